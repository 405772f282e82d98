package import EventLoop
private import Primitives

/// An HTTP/1.1 server for browsers, on one loop: GET, HEAD and POST of small bodies, each handled by a task on that
/// loop. TLS is the business of the proxy in front.
package final class HTTPServer: Sendable {
  /// The port bound, which the system chose when 0 was asked for.
  package let port: Int
  private let loop: EventLoop
  private let daemon: Daemon

  /// Binds at once and serves until `shutdown`. Throws UNAVAILABLE when the address cannot be bound.
  package init(
    address: SocketAddress, loop: EventLoop, limits: HTTPServerLimits = HTTPServerLimits(),
    handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) throws {
    let (descriptor, port) = try Listener.bind(address)
    self.port = port
    self.loop = loop
    let daemon = Daemon(listening: descriptor, loop: loop, limits: limits, handler: handler)
    self.daemon = daemon
    loop.execute { daemon.start() }
  }

  /// Accepts no more, lets open requests finish for at most `grace`, then closes every connection.
  package func shutdown(grace: Duration) async {
    let daemon = daemon
    await withCheckedContinuation { continuation in
      loop.execute { daemon.shutdown(grace: grace) { continuation.resume() } }
    }
  }
}
