package import EventLoop
internal import Primitives
package import Protobuf

/// How a channel connects and what it accepts.
package struct ChannelConfiguration: Sendable {
  package var connectTimeout: Duration = .seconds(10)
  /// The first wait after a failed connection; each further one is 1.6 times longer, ± 20 %.
  package var backoffInitial: Duration = .milliseconds(200)
  package var backoffMax: Duration = .seconds(20)
  /// The largest response message, in bytes.
  package var messageBytesMax = 4 << 20

  package init() {}
}

/// The client side of calls to one target: one connection for each loop of the group, made at the first call.
package final class Channel: Sendable {
  let target: String

  package init(
    target: String, group: EventLoopGroup, tls: TLSContext? = nil, expectedIdentity: String? = nil,
    configuration: ChannelConfiguration = ChannelConfiguration()
  ) {
    self.target = target
  }

  /// One request, one response.
  package func unary<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ request: Request, _ options: CallOptions = CallOptions()
  ) async throws -> Response {
    fatalError("not yet")
  }

  /// One request, many responses.
  package func serverStreaming<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ request: Request, _ options: CallOptions = CallOptions()
  ) async throws -> ResponseStream<Response> {
    fatalError("not yet")
  }

  /// Many requests, one response.
  package func clientStreaming<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ options: CallOptions = CallOptions()
  ) async throws -> ClientStreamingCall<Request, Response> {
    fatalError("not yet")
  }

  /// Many requests, many responses.
  package func bidirectional<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ options: CallOptions = CallOptions()
  ) async throws -> BidirectionalCall<Request, Response> {
    fatalError("not yet")
  }

  /// Closes the connections; calls under way fail with UNAVAILABLE.
  package func shutdown() async {}
}
