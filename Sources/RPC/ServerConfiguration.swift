package import EventLoop
package import HTTP2
package import Primitives

/// How a server listens, what it allows, and who may call.
package struct ServerConfiguration: Sendable {
  package var address: SocketAddress
  /// nil serves plaintext.
  package var tls: TLSContext?
  package var limits = ServerLimits()
  /// Serves `grpc.reflection.v1` and `v1alpha` too, which tell every caller that `admit` and `authenticate` let through
  /// all that the server can do.
  package var servesReflection = false
  /// Decides who calls when that needs no waiting: true when decided, false to leave it to `authenticate`. Runs on the
  /// call's loop; throws a `ServiceError` to refuse.
  package var admit: (@Sendable (inout CallContext) throws -> Bool)?
  /// Decides who calls, before each handler; throws a `ServiceError` to refuse. nil leaves callers anonymous.
  package var authenticate: (@Sendable (inout CallContext) async throws -> Void)?
  /// Told of the end of each call that reached a method: its error or nil, how long it took, and the bytes of its
  /// messages in and out. Runs on the call's loop and must not block.
  package var onCallEnd: (@Sendable (CallContext, ServiceError?, Duration, Int, Int) -> Void)?
  /// Told of each request that was refused before it reached a method. Runs on the connection's loop.
  package var onStrayRequest: (@Sendable (ServiceError) -> Void)?
  /// Told of each connection that was refused or ended for what its peer did, by a short name such as `flood_ping`.
  /// Runs on the connection's loop.
  package var onConnectionFault: (@Sendable (String) -> Void)?

  package init(address: SocketAddress, tls: TLSContext? = nil) {
    self.address = address
    self.tls = tls
  }
}

/// What a server allows its peers.
package struct ServerLimits: Sendable {
  /// Streams, headers, windows and floods of one connection.
  package var http2 = HTTP2Limits()
  /// The largest request message, in bytes.
  package var messageBytesMax = 4 << 20
  /// A connection without calls is ended after this time.
  package var idleTimeout: Duration = .seconds(300)
  /// A connection is drained after this time, ± 10 %.
  package var ageMax: Duration = .seconds(1800)
  /// How long the calls of a connection that is too old may go on.
  package var ageGrace: Duration = .seconds(30)
  /// Connections from one address, on all loops.
  package var connectionsPerAddressMax = 64
  /// Connections on all loops.
  package var connectionsMax = 2000
  /// Bytes that wait to be sent on all connections; the one that goes beyond is cut.
  package var unsentBytesTotalMax = 256 << 20

  package init() {}
}
