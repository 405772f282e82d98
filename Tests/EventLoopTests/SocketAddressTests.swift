import EventLoop
import Primitives
import Testing

struct SocketAddressTests {
  @Test(
    "EventLoop address literals are parsed and printed alike",
    arguments: ["127.0.0.1:80", "[::1]:443", "[2001:db8::1]:0", "255.255.255.255:65535", "[::ffff:127.0.0.1]:1"])
  func literals(_ text: String) throws {
    #expect(try #require(SocketAddress(text)).description == text)
  }

  @Test(
    "EventLoop what is no address literal with a port is refused",
    arguments: [
      "", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80", "[::1]", ":80", "[]:80", "name:80", "1.2.3:4",
    ])
  func refused(_ text: String) {
    #expect(SocketAddress(text) == nil)
  }

  @Test("EventLoop loopback addresses are known in every spelling")
  func loopback() throws {
    for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
      #expect(try #require(SocketAddress(text)).isLoopback, "\(text)")
    }
    for text in ["128.0.0.1:1", "[::2]:1", "[::ffff:128.0.0.1]:1", "[fe80::1]:1"] {
      #expect(try #require(SocketAddress(text)).isLoopback == false, "\(text)")
    }
  }

  @Test("EventLoop names are resolved, and an unknown one is UNAVAILABLE")
  func names() async throws {
    #expect(try await SocketAddress.resolve("localhost:80").contains { $0.isLoopback && $0.port == 80 })
    #expect(try await SocketAddress.resolve("[::1]:80") == [.v6(0, 1, scope: 0, port: 80)])
    let unknown = await #expect(throws: ServiceError.self) { try await SocketAddress.resolve("no.such.invalid:80") }
    #expect(unknown?.code == .unavailable)
    let shapeless = await #expect(throws: ServiceError.self) { try await SocketAddress.resolve("nothing") }
    #expect(shapeless?.code == .invalidArgument)
  }
}
