package import Protobuf
internal import Primitives

/// A method and the code that answers it, with the message types erased.
package struct MethodHandler: Sendable {
  enum Body: Sendable {
    /// The fast path: the request's bytes in, the framed response out.
    case unary(@Sendable ([UInt8], CallContext) async throws -> [UInt8])
    case streaming(@Sendable (any FrameSource, any FrameSink, CallContext) async throws -> Void)
  }

  package let method: MethodDescriptor
  let body: Body

  package static func unary<Request: Message, Response: Message>(
    _ method: MethodDescriptor, _ body: @escaping @Sendable (Request, CallContext) async throws -> Response
  ) -> MethodHandler {
    MethodHandler(
      method: method,
      body: .unary { bytes, context in
        Frame.encode(try await body(try Frame.request(bytes), context))
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
        try await sink.send(Frame.encode(try await body(RequestStream(source), context)))
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
