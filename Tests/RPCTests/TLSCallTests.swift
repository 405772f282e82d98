import EventLoop
import Primitives
import RPC
import Testing

/// Calls over TLS 1.3.
@Suite struct TLSCallTests {
  @Test("3.12 over mutual TLS each side knows the other by its URI name, and a stranger's server is refused")
  func mutual() async throws {
    let certificates = try Certificates()
    let server = try certificates.issue("server", "URI:spiffe://afterthoughts/vault")
    let client = try certificates.issue("client", "URI:spiffe://afterthoughts/delivery")
    let group = EventLoopGroup(count: 1)
    var configuration = ServerConfiguration(address: SocketAddress("127.0.0.1:0")!)
    configuration.tls = try .server(
      certificatePath: server.certificate, keyPath: server.key, caPath: certificates.caPath)
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, context: CallContext) in
      Note(context.peerIdentity ?? "nobody")
    }
    let service = Server(configuration: configuration, services: [TestService(handlers: [handler])], group: group)
    try service.start()
    let tls = try TLSContext.client(
      caPath: certificates.caPath, certificatePath: client.certificate, keyPath: client.key)
    func identity(_ expected: String) async -> Result<String, any Error> {
      let channel = Channel(
        target: "127.0.0.1:\(service.port)", group: group, tls: tls, expectedIdentity: expected)
      let result: Result<String, any Error>
      do {
        let note: Note = try await channel.unary(TestService.unary, Note(), CallOptions(timeout: .seconds(20)))
        result = .success(note.text)
      } catch {
        result = .failure(error)
      }
      await channel.shutdown()
      return result
    }
    let known = try await identity("spiffe://afterthoughts/vault").get()
    #expect(known == "spiffe://afterthoughts/delivery")
    let stranger = await failure { _ = try await identity("spiffe://afterthoughts/identity").get() }
    #expect(stranger?.code == .unavailable)
    await service.shutdown(grace: .zero)
    await group.shutdown()
  }
}
