internal import Primitives
package import Protobuf

/// A method and the code that answers it, with the message types erased.
package struct MethodHandler: Sendable {
  /// A handler with its decoded request; gives the call its response.
  typealias Prepared = @Sendable (ServerCall, CallContext) async throws -> Void

  enum Body: Sendable {
    /// The fast path: decodes the request where it lies in the receive buffer.
    case unary(@Sendable (Span<UInt8>) throws -> Prepared)
    case streaming(@Sendable (any FrameSource, any FrameSink, CallContext) async throws -> Void)
  }

  package let method: MethodDescriptor
  let body: Body
  /// Responses are compressed for clients that take gzip, unless the call or a single message asks otherwise.
  private(set) var compressesResponses = false

  init(method: MethodDescriptor, body: Body) {
    self.method = method
    self.body = body
  }

  /// The same handler with compressed responses. Not for responses that hold a secret beside text of a stranger: their
  /// length tells of the secret.
  package func compressingResponses() -> MethodHandler {
    var handler = self
    handler.compressesResponses = true
    return handler
  }

  package static func unary<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ body: @escaping @Sendable (Request, CallContext) async throws -> Response
  ) -> MethodHandler {
    MethodHandler(
      method: method,
      body: .unary { bytes in
        let request: Request = try Frame.request(bytes)
        return { call, context in call.respond(try await body(request, context), context) }
      })
  }

  package static func serverStreaming<Request: Message, Response: Message>(
    _ method: MethodDescriptor,
    _ body: @escaping @Sendable (Request, ResponseWriter<Response>, CallContext) async throws -> Void
  ) -> MethodHandler {
    MethodHandler(
      method: method,
      body: .streaming { source, sink, context in
        try await body(try Frame.request(try await source.only()), ResponseWriter(sink), context)
      })
  }

  package static func clientStreaming<Request: Message, Response: Message>(
    _ method: MethodDescriptor,
    _ body: @escaping @Sendable (RequestStream<Request>, CallContext) async throws -> Response
  ) -> MethodHandler {
    MethodHandler(
      method: method,
      body: .streaming { source, sink, context in
        try await sink.send(Frame.encode(try await body(RequestStream(source), context)), .asCall)
      })
  }

  package static func bidirectional<Request: Message, Response: Message>(
    _ method: MethodDescriptor,
    _ body: @escaping @Sendable (RequestStream<Request>, ResponseWriter<Response>, CallContext) async throws -> Void
  ) -> MethodHandler {
    MethodHandler(
      method: method,
      body: .streaming { source, sink, context in
        try await body(RequestStream(source), ResponseWriter(sink), context)
      })
  }
}
