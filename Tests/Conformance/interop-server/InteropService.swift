internal import InteropAPI
internal import Primitives
internal import RPC

/// `grpc.testing.TestService` as the public descriptions of gRPC's interoperability tests ask for it. The methods that
/// no server should have are left out of `handlers`.
struct InteropService: GRPCTesting.TestService {
  private static let echoInitial = "x-grpc-test-echo-initial"
  private static let echoTrailing = "x-grpc-test-echo-trailing-bin"
  private static let responseBytesMax: Int32 = 16 << 20

  var handlers: [MethodHandler] {
    [
      .unary(GRPCTesting.TestServiceMethods.emptyCall) { try await emptyCall($0, $1) },
      .unary(GRPCTesting.TestServiceMethods.unaryCall) { try await unaryCall($0, $1) },
      .unary(GRPCTesting.TestServiceMethods.cacheableUnaryCall) { try await cacheableUnaryCall($0, $1) },
      .serverStreaming(GRPCTesting.TestServiceMethods.streamingOutputCall) {
        try await streamingOutputCall($0, $1, $2)
      },
      .clientStreaming(GRPCTesting.TestServiceMethods.streamingInputCall) { try await streamingInputCall($0, $1) },
      .bidirectional(GRPCTesting.TestServiceMethods.fullDuplexCall) { try await fullDuplexCall($0, $1, $2) },
      .bidirectional(GRPCTesting.TestServiceMethods.halfDuplexCall) { try await halfDuplexCall($0, $1, $2) },
    ]
  }

  func emptyCall(_ request: GRPCTesting.Empty, _ context: CallContext) async throws -> GRPCTesting.Empty {
    echo(context)
    return GRPCTesting.Empty()
  }

  func unaryCall(
    _ request: GRPCTesting.SimpleRequest, _ context: CallContext
  ) async throws -> GRPCTesting.SimpleResponse {
    echo(context)
    try fail(request.responseStatus)
    try expect(request.expectCompressed, context)
    context.compressesResponses = request.responseCompressed?.value ?? false
    return GRPCTesting.SimpleResponse(payload: try payload(request.responseSize))
  }

  func cacheableUnaryCall(
    _ request: GRPCTesting.SimpleRequest, _ context: CallContext
  ) async throws -> GRPCTesting.SimpleResponse {
    context.responseMetadata.initial.append("cache-control", "max-age=60, public")
    return try await unaryCall(request, context)
  }

  func streamingOutputCall(
    _ request: GRPCTesting.StreamingOutputCallRequest,
    _ responses: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>, _ context: CallContext
  ) async throws {
    echo(context)
    try fail(request.responseStatus)
    try await answer(request, responses, context)
  }

  func streamingInputCall(
    _ requests: RequestStream<GRPCTesting.StreamingInputCallRequest>, _ context: CallContext
  ) async throws -> GRPCTesting.StreamingInputCallResponse {
    echo(context)
    var total: Int32 = 0
    for try await request in requests {
      try expect(request.expectCompressed, context)
      total &+= Int32(truncatingIfNeeded: request.payload?.body.count ?? 0)
    }
    return GRPCTesting.StreamingInputCallResponse(aggregatedPayloadSize: total)
  }

  func fullDuplexCall(
    _ requests: RequestStream<GRPCTesting.StreamingOutputCallRequest>,
    _ responses: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>, _ context: CallContext
  ) async throws {
    echo(context)
    for try await request in requests {
      try fail(request.responseStatus)
      try await answer(request, responses, context)
    }
  }

  func halfDuplexCall(
    _ requests: RequestStream<GRPCTesting.StreamingOutputCallRequest>,
    _ responses: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>, _ context: CallContext
  ) async throws {
    echo(context)
    var all: [GRPCTesting.StreamingOutputCallRequest] = []
    for try await request in requests { all.append(request) }
    for request in all {
      try fail(request.responseStatus)
      try await answer(request, responses, context)
    }
  }

  func unimplementedCall(_ request: GRPCTesting.Empty, _ context: CallContext) async throws -> GRPCTesting.Empty {
    throw ServiceError(.unimplemented, "No server has this method.")
  }

  // MARK: What the requests ask for

  /// Sends the two test headers back as they came, duplicates in order.
  private func echo(_ context: CallContext) {
    for pair in context.metadata.pairs {
      switch pair.value {
      case .text(let text) where pair.name == Self.echoInitial:
        context.responseMetadata.initial.append(pair.name, text)
      case .binary(let bytes) where pair.name == Self.echoTrailing:
        context.responseMetadata.trailing.append(pair.name, bytes: bytes)
      default: break
      }
    }
  }

  private func fail(_ status: GRPCTesting.EchoStatus?) throws {
    guard let status, status.code != 0 else { return }
    throw ServiceError(ServiceError.Code(rawValue: status.code) ?? .unknown, status.message)
  }

  private func expect(_ compressed: GRPCTesting.BoolValue?, _ context: CallContext) throws {
    guard let compressed, compressed.value != context.isRequestCompressed else { return }
    let what = context.isRequestCompressed ? "compressed" : "not compressed"
    throw ServiceError.invalid("expect_compressed", "the message is \(what)")
  }

  private func answer(
    _ request: GRPCTesting.StreamingOutputCallRequest,
    _ responses: ResponseWriter<GRPCTesting.StreamingOutputCallResponse>, _ context: CallContext
  ) async throws {
    // The headers, which say whether any message may be compressed, go ahead of the first one.
    context.compressesResponses = request.responseParameters.contains { $0.compressed?.value == true }
    for parameters in request.responseParameters {
      if parameters.intervalUs > 0 { try await Task.sleep(for: .microseconds(parameters.intervalUs)) }
      try await responses.write(
        GRPCTesting.StreamingOutputCallResponse(payload: try payload(parameters.size)),
        compression: parameters.compressed?.value == true ? .on : .off)
    }
  }

  private func payload(_ size: Int32) throws -> GRPCTesting.Payload {
    guard 0...Self.responseBytesMax ~= size else {
      throw ServiceError.invalid("response_size", "must be from 0 to \(Self.responseBytesMax)")
    }
    return GRPCTesting.Payload(body: [UInt8](repeating: 0, count: Int(size)))
  }
}
