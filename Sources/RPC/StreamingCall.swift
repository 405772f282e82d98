internal import Primitives
package import Protobuf

/// A call whose client sends many messages and gets one. Dropping it unfinished cancels the call.
package struct ClientStreamingCall<Request: Message, Response: Message>: Sendable {
  private let call: CallHandle

  init(_ call: CallHandle) {
    self.call = call
  }

  /// Sends one request; suspends while too much is unsent.
  package func write(_ request: Request, compression: MessageCompression = .asCall) async throws {
    try await call.send(Frame.encode(request), compression)
  }

  /// Ends the requests and waits for the response.
  package func finish() async throws -> Response {
    try await call.finishSending()
    return try Frame.response(try await call.only())
  }

  /// Gives the call up.
  package func cancel() { call.cancel() }
}

/// A call in which both sides send many messages. Dropping it unfinished cancels the call.
package struct BidirectionalCall<Request: Message, Response: Message>: Sendable {
  private let call: CallHandle

  init(_ call: CallHandle) {
    self.call = call
  }

  /// Sends one request; suspends while too much is unsent.
  package func write(_ request: Request, compression: MessageCompression = .asCall) async throws {
    try await call.send(Frame.encode(request), compression)
  }

  /// Ends the requests; responses may follow.
  package func finishWriting() async throws { try await call.finishSending() }

  package var responses: ResponseStream<Response> { ResponseStream(call) }

  /// Gives the call up.
  package func cancel() { call.cancel() }
}
