package import EventLoop
package import HTTP2
package import Primitives
package import Protobuf

/// How a channel connects and what it accepts.
package struct ChannelConfiguration: Sendable {
  /// For the connection and its TLS handshake.
  package var connectTimeout: Duration = .seconds(10)
  /// The first wait after a failed connection; each further one is 1.6 times longer, ± 20 %.
  package var backoffInitial: Duration = .milliseconds(200)
  package var backoffMax: Duration = .seconds(20)
  /// The largest response message, in bytes.
  package var messageBytesMax = 4 << 20
  /// A connection that has been silent for this time is asked for a sign of life by a PING; nil never asks. Servers
  /// allow one in five minutes, those of this house one a minute while calls are under way; one that complains doubles
  /// it.
  package var keepaliveTime: Duration? = .seconds(300)
  /// Without a sign of life for this time after a PING the connection is given up, and its calls fail with UNAVAILABLE.
  package var keepaliveTimeout: Duration = .seconds(20)
  /// Asks also while no call is under way.
  package var keepsIdleConnections = false
  /// Windows and header limits of its connections.
  package var http2 = HTTP2Limits()
  /// Told of the end of each call: its error or nil, and how long it took, waiting for a connection included. Runs on
  /// the call's loop and must not block.
  package var onCallEnd: (@Sendable (MethodDescriptor, ServiceError?, Duration) -> Void)?

  package init() {}
}

/// The client side of calls to one target: for each loop of the group, one connection to each of the target's addresses,
/// made at the first call and used in turn. A call made on a loop of the group stays on it. Every failed call throws a
/// `ServiceError`.
///
/// A call of an idempotent method with a single request is repeated when it ends with UNAVAILABLE before any answer: at
/// most 5 attempts, fewer while the target keeps failing, and as the server's `grpc-retry-pushback-ms` says.
package final class Channel: Sendable {
  private let group: EventLoopGroup
  private let loops: [ChannelLoop]

  /// `target` is `host:port`, or several of that with commas between. With `tls`, the server's certificate must name the host, or `expectedIdentity` (a URI).
  package convenience init(
    target: String, group: EventLoopGroup, tls: TLSContext? = nil, expectedIdentity: String? = nil,
    configuration: ChannelConfiguration = ChannelConfiguration()
  ) {
    self.init(
      ChannelTarget(target, tls: tls, expectedIdentity: expectedIdentity), group: group, configuration: configuration)
  }

  /// Calls to a server of this process, without a port between them: the server need not be started, and everything
  /// else is as over the network.
  package static func inProcess(
    _ server: Server, group: EventLoopGroup, configuration: ChannelConfiguration = ChannelConfiguration()
  ) -> Channel {
    Channel(ChannelTarget(server), group: group, configuration: configuration)
  }

  private init(_ target: ChannelTarget, group: EventLoopGroup, configuration: ChannelConfiguration) {
    self.group = group
    loops = group.loops.map { ChannelLoop(loop: $0, target: target, configuration: configuration) }
  }

  /// One request, one response.
  package func unary<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ request: Request, _ options: CallOptions = CallOptions()
  ) async throws -> Response {
    let call = ClientCall(loopOfCall(), method, options, frame: Frame.encode(request))
    if call.loop.isCurrent { return try Frame.response(try await call.response()) }
    return try await withTaskExecutorPreference(call.loop) { try Frame.response(try await call.response()) }
  }

  /// One request, many responses. Returns at once; a failure comes out of the stream.
  package func serverStreaming<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ request: Request, _ options: CallOptions = CallOptions()
  ) async throws -> ResponseStream<Response> {
    ResponseStream(begin(method, options, frame: Frame.encode(request)))
  }

  /// Many requests, one response.
  package func clientStreaming<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ options: CallOptions = CallOptions()
  ) async throws -> ClientStreamingCall<Request, Response> {
    ClientStreamingCall(begin(method, options, frame: nil))
  }

  /// Many requests, many responses.
  package func bidirectional<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ options: CallOptions = CallOptions()
  ) async throws -> BidirectionalCall<Request, Response> {
    BidirectionalCall(begin(method, options, frame: nil))
  }

  private func begin(_ method: MethodDescriptor, _ options: CallOptions, frame: [UInt8]?) -> CallHandle {
    let call = ClientCall(loopOfCall(), method, options, frame: frame)
    if call.loop.isCurrent { call.begin() } else { call.loop.execute { call.begin() } }
    return CallHandle(call)
  }

  private func loopOfCall() -> ChannelLoop {
    let loop = group.any
    return loops.first { $0.loop === loop } ?? loops[0]
  }

  /// Closes the connections; calls under way fail with UNAVAILABLE.
  package func shutdown() async {
    for loop in loops {
      await withCheckedContinuation { continuation in
        loop.loop.execute {
          loop.shutdown()
          continuation.resume()
        }
      }
    }
  }
}
