import EventLoop
import Glibc
import Primitives
import RPC
import TestKit
import Testing

@testable import ServiceKit

@Suite struct CertificateTests {
  @Test("T13 new certificates are used without a restart, and a broken file leaves the present ones in use")
  func reload() async throws {
    let certificates = try TestCertificates()
    let (certificate, key) = try certificates.issue("server", "URI:spiffe://afterthoughts/one")
    let server = try TLSContext.server(certificatePath: certificate, keyPath: key, caPath: certificates.caPath)
    let client = try TLSContext.client(caPath: certificates.caPath)
    var environment = Configuration(environment: [
      "TLS_CERTIFICATE_PATH": certificate, "TLS_KEY_PATH": key, "TLS_CA_PATH": certificates.caPath,
    ])
    let paths = try #require(TransportConfig(&environment).tls)
    let watch = CertificateWatch(paths: paths, contexts: [server, client])
    let group = EventLoopGroup(count: 1)
    var rig = ProbeRig(group: group)
    _ = try rig.serve([ProbeService { _ in }]) { $0.tls = server }
    let port = rig.lastPort
    /// Whether a new connection meets the certificate of this name.
    func meets(_ name: String, _ channel: Channel? = nil) async -> Bool {
      let fresh = rig.channel(to: port, tls: client, identity: "spiffe://afterthoughts/\(name)")
      return (try? await go(fresh)) != nil
    }
    let old = rig.channel(to: port, tls: client, identity: "spiffe://afterthoughts/one")
    try await go(old)

    #expect(await !watch.look())
    _ = try certificates.issue("server", "URI:spiffe://afterthoughts/two")
    #expect(await meets("one"))
    #expect(await watch.look())
    #expect(await meets("two"))
    #expect(await !meets("one"))
    // Connections that exist go on.
    try await go(old)
    #expect(await !watch.look())

    let file = try #require(fopen(certificate, "w"))
    fputs("nonsense", file)
    fclose(file)
    #expect(await !watch.look())
    #expect(await meets("two"))
    _ = try certificates.issue("server", "URI:spiffe://afterthoughts/three")
    #expect(await watch.look())
    #expect(await meets("three"))
    // SIGHUP asks without a change.
    #expect(await watch.look(isAsked: true))
    await rig.end()
    await group.shutdown()
  }
}
