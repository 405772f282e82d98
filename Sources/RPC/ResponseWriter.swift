package import Protobuf

/// Where a handler writes the responses of a stream.
package struct ResponseWriter<Response: Message>: Sendable {
  private let sink: any FrameSink

  init(_ sink: any FrameSink) {
    self.sink = sink
  }

  /// Sends one response. Suspends while the call's unsent bytes are above the server's mark, so a slow reader slows the
  /// handler instead of filling memory. Throws `CancellationError` when the call is over.
  package func write(_ response: Response, compression: MessageCompression = .asCall) async throws {
    try await sink.send(Frame.encode(response), compression)
  }
}

/// The requests of a stream, in the order sent. One consumer.
package struct RequestStream<Request: Message>: AsyncSequence, Sendable {
  package typealias Element = Request
  package typealias Failure = any Error

  private let source: any FrameSource

  init(_ source: any FrameSource) {
    self.source = source
  }

  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let source: any FrameSource

    package mutating func next() async throws -> Request? {
      guard let bytes = try await source.next() else { return nil }
      return try Frame.request(bytes)
    }
  }

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }
}

/// The responses of a stream, in the order sent, at the client. One consumer. The iteration throws the `ServiceError`
/// that ended the call; dropping the stream cancels the call.
package struct ResponseStream<Response: Message>: AsyncSequence, Sendable {
  package typealias Element = Response
  package typealias Failure = any Error

  private let source: any FrameSource

  init(_ source: any FrameSource) {
    self.source = source
  }

  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let source: any FrameSource

    package mutating func next() async throws -> Response? {
      guard let bytes = try await source.next() else { return nil }
      return try Frame.response(bytes)
    }
  }

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }
}
