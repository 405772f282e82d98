package import EventLoop
internal import HTTPServer
internal import Primitives

/// Where the process is looked at from outside its calls: `/metrics`, `/healthz` (alive) and `/readyz` (ready to serve).
package final class AdminServer: Sendable {
  private let server: HTTPServer

  /// The port bound, which the system chose when 0 was asked for.
  package var port: Int { server.port }

  /// Listens at once. Throws UNAVAILABLE when the address cannot be bound.
  package init(
    address: SocketAddress, loop: EventLoop, metrics: Metrics, isReady: @escaping @Sendable () async -> Bool
  ) throws {
    server = try HTTPServer(address: address, loop: loop) { request in
      guard request.method == "GET" else { return .text("method not allowed\n", status: 405) }
      switch request.rawPath {
      case "/metrics":
        let text = await metrics.text()
        return HTTPResponse(
          headers: [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")], body: Array(text.utf8))
      case "/healthz": return .text("ok\n")
      case "/readyz": return await isReady() ? .text("ready\n") : .text("not ready\n", status: 503)
      default: return .text("not found\n", status: 404)
      }
    }
  }

  package func shutdown() async { await server.shutdown(grace: .seconds(1)) }
}
