import EventLoop
import Primitives
import Testing

struct TLSTests {
  private let group = EventLoopGroup(count: 1)
  private let certificates: Certificates
  private let server: EchoServer
  private let serverContext: TLSContext
  private var loop: EventLoop { group.loops[0] }

  init() throws {
    certificates = try Certificates()
    let (certificate, key) = try certificates.issue(
      "server", "URI:spiffe://afterthoughts/vault,IP:127.0.0.1,DNS:vault.test")
    serverContext = try TLSContext.server(certificatePath: certificate, keyPath: key, caPath: certificates.caPath)
    server = try EchoServer(group: group, tls: serverContext)
  }

  @Test("EventLoop mutual TLS carries bytes, agrees on h2 and shows each side the other's name")
  func mutual() async throws {
    let (certificate, key) = try certificates.issue("client", "URI:spiffe://afterthoughts/identity")
    let client = try TLSContext.client(caPath: certificates.caPath, certificatePath: certificate, keyPath: key)
    let stream = try await ByteStream.connect(
      to: server.address, on: loop, tls: client, expectedIdentity: "spiffe://afterthoughts/vault")
    let payload = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 17) }
    let recorder = StreamRecorder()
    await on(loop) {
      stream.delegate = recorder
      stream.write(payload)
    }
    #expect(await recorder.bytes(payload.count) == payload)
    let accepted = try #require(await server.accepted())
    #expect(await on(loop) { accepted.stream.peerIdentity } == "spiffe://afterthoughts/identity")
    #expect(await on(loop) { stream.peerIdentity } == "spiffe://afterthoughts/vault")
    #expect(await on(loop) { [stream.negotiatedProtocol, accepted.stream.negotiatedProtocol] } == ["h2", "h2"])
    await on(loop) { stream.close() }
    #expect(await recorder.next() == .closed(nil))
    #expect(await accepted.recorder.next() == .established)
    var last: StreamRecorder.Event?
    repeat { last = await accepted.recorder.next() } while last == .drained
    #expect(last == .closed(nil))
    await group.shutdown()
  }

  @Test("EventLoop a client without a certificate is served and has no name; addresses and DNS names are checked")
  func oneSided() async throws {
    let client = try TLSContext.client(caPath: certificates.caPath)
    for name in [nil, "vault.test"] {
      let stream = try await ByteStream.connect(to: server.address, on: loop, tls: client, serverName: name)
      let accepted = try #require(await server.accepted())
      #expect(await accepted.recorder.next() == .established)
      #expect(await on(loop) { accepted.stream.peerIdentity } == nil)
      await on(loop) { stream.abort() }
    }
    await expectFailure(client, serverName: "other.test") { "\($0)".contains("hostname mismatch") }
    await group.shutdown()
  }

  @Test("EventLoop a certificate with two URI names has no identity")
  func twoNames() async throws {
    let (certificate, key) = try certificates.issue("client", "URI:spiffe://a/b,URI:spiffe://c/d")
    let client = try TLSContext.client(caPath: certificates.caPath, certificatePath: certificate, keyPath: key)
    let stream = try await ByteStream.connect(to: server.address, on: loop, tls: client)
    let accepted = try #require(await server.accepted())
    #expect(await accepted.recorder.next() == .established)
    #expect(await on(loop) { accepted.stream.peerIdentity } == nil)
    await on(loop) { stream.abort() }
    await group.shutdown()
  }

  @Test("EventLoop a server of another authority, or with another name, is refused")
  func wrongServer() async throws {
    let other = try Certificates()
    await expectFailure(try TLSContext.client(caPath: other.caPath)) { "\($0)".contains("certificate") }
    let client = try TLSContext.client(caPath: certificates.caPath)
    await expectFailure(client, expectedIdentity: "spiffe://afterthoughts/identity") {
      $0 == .wrongIdentity("spiffe://afterthoughts/vault")
    }
    await group.shutdown()
  }

  @Test("EventLoop a client certificate of another authority is refused")
  func wrongClient() async throws {
    let other = try Certificates()
    let (certificate, key) = try other.issue("client", "URI:spiffe://afterthoughts/identity")
    let client = try TLSContext.client(caPath: certificates.caPath, certificatePath: certificate, keyPath: key)
    // In TLS 1.3 the client is done before the server has judged it: the refusal arrives as the end of the stream.
    let stream = try? await ByteStream.connect(to: server.address, on: loop, tls: client)
    let accepted = try #require(await server.accepted())
    guard case .closed(let error?) = await accepted.recorder.next() else {
      Issue.record("the server took the certificate")
      return
    }
    #expect("\(error)".contains("certificate"))
    await on(loop) { stream?.abort() }
    await group.shutdown()
  }

  @Test("EventLoop a plaintext client of a TLS listener is closed, not served")
  func plaintextClient() async throws {
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    let recorder = StreamRecorder()
    await on(loop) {
      stream.delegate = recorder
      stream.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
    }
    let accepted = try #require(await server.accepted())
    guard case .closed(_?) = await accepted.recorder.next() else {
      Issue.record("the server spoke plaintext")
      return
    }
    await group.shutdown()
  }

  @Test("EventLoop reload takes new files for new connections and keeps the old on an error")
  func reload() async throws {
    let client = try TLSContext.client(caPath: certificates.caPath)
    _ = try certificates.issue("server", "URI:spiffe://afterthoughts/renewed,IP:127.0.0.1")
    try serverContext.reload()
    let stream = try await ByteStream.connect(
      to: server.address, on: loop, tls: client, expectedIdentity: "spiffe://afterthoughts/renewed")
    await on(loop) { stream.abort() }
    #expect(throws: StreamError.self) {
      try TLSContext.server(
        certificatePath: "\(certificates.directory)/none.pem", keyPath: "\(certificates.directory)/none.key",
        caPath: nil)
    }
    await group.shutdown()
  }

  private func expectFailure(
    _ client: TLSContext, serverName: String? = nil, expectedIdentity: String? = nil,
    _ matches: (StreamError) -> Bool
  ) async {
    let error = await #expect(throws: ServiceError.self) {
      try await ByteStream.connect(
        to: server.address, on: loop, tls: client, serverName: serverName, expectedIdentity: expectedIdentity)
    }
    guard let cause = error?.cause as? StreamError, matches(cause) else {
      Issue.record("another error: \(String(describing: error))")
      return
    }
  }
}
