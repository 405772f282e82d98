internal import EventLoop
internal import InteropAPI
internal import Primitives
internal import RPC

/// What did not hold.
struct CaseFailure: Error, CustomStringConvertible {
  let description: String
}

func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
  if !condition { throw CaseFailure(description: what()) }
}

/// Runs `body`, which must fail with `code`; gives the error.
@discardableResult
func requireFailure(_ code: ServiceError.Code, _ body: () async throws -> Void) async throws -> ServiceError {
  do {
    try await body()
  } catch let error as ServiceError {
    try require(error.code == code, "expected \(code.name), not \(error)")
    return error
  }
  throw CaseFailure(description: "expected \(code.name), but the call went well")
}

/// The client's side of gRPC's interoperability cases, from their public descriptions. One method for each case.
struct InteropCases: Sendable {
  typealias Case = @Sendable (InteropCases) async throws -> Void

  static let all: [String: Case] = [
    "empty_unary": { try await $0.emptyUnary() },
    "large_unary": { try await $0.largeUnary() },
    "client_streaming": { try await $0.clientStreaming() },
    "server_streaming": { try await $0.serverStreaming() },
    "ping_pong": { try await $0.pingPong() },
    "empty_stream": { try await $0.emptyStream() },
    "half_duplex": { try await $0.halfDuplex() },
    "client_compressed_unary": { try await $0.clientCompressedUnary() },
    "server_compressed_unary": { try await $0.serverCompressedUnary() },
    "client_compressed_streaming": { try await $0.clientCompressedStreaming() },
    "server_compressed_streaming": { try await $0.serverCompressedStreaming() },
    "custom_metadata": { try await $0.customMetadata() },
    "status_code_and_message": { try await $0.statusCodeAndMessage() },
    "special_status_message": { try await $0.specialStatusMessage() },
    "unimplemented_method": { try await $0.unimplementedMethod() },
    "unimplemented_service": { try await $0.unimplementedService() },
    "cancel_after_begin": { try await $0.cancelAfterBegin() },
    "cancel_after_first_response": { try await $0.cancelAfterFirstResponse() },
    "timeout_on_sleeping_server": { try await $0.timeoutOnSleepingServer() },
    "slow_server": { try await $0.slowServer() },
    "rpc_soak": { try await $0.rpcSoak() },
    "channel_soak": { try await $0.channelSoak() },
  ]

  static let responseSizes: [Int32] = [31415, 9, 2653, 58979]
  static let requestSizes = [27182, 8, 1828, 45904]

  let target: String
  let group: EventLoopGroup
  let tls: TLSContext?
  let soakCount: Int
  /// Whether the server looks at `expect_compressed`; grpcio's cannot.
  let expectsCompression: Bool
  private let channel: Channel
  var service: GRPCTesting.TestServiceClient { GRPCTesting.TestServiceClient(channel) }

  init(target: String, group: EventLoopGroup, tls: TLSContext?, soakCount: Int, expectsCompression: Bool) {
    self.target = target
    self.group = group
    self.tls = tls
    self.soakCount = soakCount
    self.expectsCompression = expectsCompression
    channel = Channel(target: target, group: group, tls: tls)
  }

  static func payload(_ size: Int) -> GRPCTesting.Payload {
    GRPCTesting.Payload(body: [UInt8](repeating: 0, count: size))
  }

  static let largeRequest = GRPCTesting.SimpleRequest(responseSize: 314_159, payload: payload(271_828))

  static func ask(_ response: Int32, payload size: Int) -> GRPCTesting.StreamingOutputCallRequest {
    GRPCTesting.StreamingOutputCallRequest(
      responseParameters: [GRPCTesting.ResponseParameters(size: response)], payload: payload(size))
  }

  private func emptyUnary() async throws {
    let response = try await service.emptyCall(GRPCTesting.Empty())
    try require(response == GRPCTesting.Empty(), "the answer is not empty: \(response)")
  }

  private func largeUnary() async throws { try await largeCall(service) }

  private func largeCall(_ service: GRPCTesting.TestServiceClient) async throws {
    let response = try await service.unaryCall(Self.largeRequest)
    try require(response.payload == Self.payload(314_159), "the answer is not 314159 zero bytes")
  }

  private func clientStreaming() async throws {
    let call = try await service.streamingInputCall()
    for size in Self.requestSizes {
      try await call.write(GRPCTesting.StreamingInputCallRequest(payload: Self.payload(size)))
    }
    let response = try await call.finish()
    try require(response.aggregatedPayloadSize == 74922, "counted \(response.aggregatedPayloadSize) bytes, not 74922")
  }

  private func serverStreaming() async throws {
    let request = GRPCTesting.StreamingOutputCallRequest(
      responseParameters: Self.responseSizes.map { GRPCTesting.ResponseParameters(size: $0) })
    try await requireSizes(try await service.streamingOutputCall(request), Self.responseSizes)
  }

  private func pingPong() async throws {
    let call = try await service.fullDuplexCall()
    var responses = call.responses.makeAsyncIterator()
    for (request, response) in zip(Self.requestSizes, Self.responseSizes) {
      try await call.write(Self.ask(response, payload: request))
      let answer = try await responses.next()
      try require(answer?.payload == Self.payload(Int(response)), "the answer is not \(response) zero bytes")
    }
    try await call.finishWriting()
    try require(try await responses.next() == nil, "an answer came after the last one")
  }

  private func emptyStream() async throws {
    let call = try await service.fullDuplexCall()
    try await call.finishWriting()
    try await requireSizes(call.responses, [])
  }

  private func halfDuplex() async throws {
    let call = try await service.halfDuplexCall()
    for (request, response) in zip(Self.requestSizes, Self.responseSizes) {
      try await call.write(Self.ask(response, payload: request))
    }
    try await call.finishWriting()
    try await requireSizes(call.responses, Self.responseSizes)
  }

  private func requireSizes(
    _ responses: ResponseStream<GRPCTesting.StreamingOutputCallResponse>, _ sizes: [Int32]
  ) async throws {
    var received: [Int32] = []
    for try await response in responses { received.append(Int32(response.payload?.body.count ?? -1)) }
    try require(received == sizes, "the answers have \(received) bytes, not \(sizes)")
  }
}

// MARK: - Compression

extension InteropCases {
  private static let yes = GRPCTesting.BoolValue(value: true)
  private static let no = GRPCTesting.BoolValue(value: false)

  private func clientCompressedUnary() async throws {
    var request = Self.largeRequest
    request.expectCompressed = Self.yes
    if expectsCompression {
      try await requireFailure(.invalidArgument) { _ = try await service.unaryCall(request) }
    }
    let compressed = try await service.unaryCall(request, CallOptions(compressesRequests: true))
    try require(compressed.payload == Self.payload(314_159), "the answer is not 314159 zero bytes")
    request.expectCompressed = Self.no
    let plain = try await service.unaryCall(request)
    try require(plain.payload == Self.payload(314_159), "the answer is not 314159 zero bytes")
  }

  private func serverCompressedUnary() async throws {
    var request = Self.largeRequest
    for wanted in [Self.yes, Self.no] {
      request.responseCompressed = wanted
      let response = try await service.unaryCall(request)
      try require(response.payload == Self.payload(314_159), "the answer is not 314159 zero bytes")
    }
  }

  private func clientCompressedStreaming() async throws {
    let compressed = GRPCTesting.StreamingInputCallRequest(payload: Self.payload(27182), expectCompressed: Self.yes)
    let plain = GRPCTesting.StreamingInputCallRequest(payload: Self.payload(45904), expectCompressed: Self.no)
    if expectsCompression {
      try await requireFailure(.invalidArgument) {
        let probe = try await service.streamingInputCall()
        try await probe.write(compressed)
        _ = try await probe.finish()
      }
    }
    let call = try await service.streamingInputCall(CallOptions(compressesRequests: true))
    try await call.write(compressed, compression: .on)
    try await call.write(plain, compression: .off)
    let response = try await call.finish()
    try require(response.aggregatedPayloadSize == 73086, "counted \(response.aggregatedPayloadSize) bytes, not 73086")
  }

  private func serverCompressedStreaming() async throws {
    let request = GRPCTesting.StreamingOutputCallRequest(responseParameters: [
      GRPCTesting.ResponseParameters(size: 31415, compressed: Self.yes),
      GRPCTesting.ResponseParameters(size: 92653, compressed: Self.no),
    ])
    try await requireSizes(try await service.streamingOutputCall(request), [31415, 92653])
  }
}

// MARK: - Metadata and status

extension InteropCases {
  private static let initialName = "x-grpc-test-echo-initial"
  private static let trailingName = "x-grpc-test-echo-trailing-bin"

  private func customMetadata() async throws {
    var metadata = Metadata()
    metadata.append(Self.initialName, "test_initial_metadata_value")
    metadata.append(Self.trailingName, bytes: [0xAB, 0xAB, 0xAB])

    let unary = ResponseMetadata()
    var options = CallOptions(metadata: metadata)
    options.responseMetadata = unary
    _ = try await service.unaryCall(
      GRPCTesting.SimpleRequest(responseSize: 314_159, payload: Self.payload(271_828)), options)
    try requireEcho(unary)

    let streaming = ResponseMetadata()
    options.responseMetadata = streaming
    let call = try await service.fullDuplexCall(options)
    try await call.write(Self.ask(314_159, payload: 271_828))
    try await call.finishWriting()
    try await requireSizes(call.responses, [314_159])
    try requireEcho(streaming)
  }

  private func requireEcho(_ received: ResponseMetadata) throws {
    try require(
      received.initial.values(Self.initialName) == ["test_initial_metadata_value"],
      "the initial metadata is \(received.initial)")
    try require(
      received.trailing.bytes(Self.trailingName) == [0xAB, 0xAB, 0xAB], "the trailing metadata is \(received.trailing)")
  }

  private func statusCodeAndMessage() async throws { try await echoStatus("test status message") }

  private func specialStatusMessage() async throws {
    let text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
    try await requireUnaryStatus(GRPCTesting.EchoStatus(code: 2, message: text))
  }

  private func echoStatus(_ text: String) async throws {
    let status = GRPCTesting.EchoStatus(code: 2, message: text)
    try await requireUnaryStatus(status)
    let error = try await requireFailure(.unknown) {
      let call = try await service.fullDuplexCall()
      try await call.write(GRPCTesting.StreamingOutputCallRequest(responseStatus: status))
      try await call.finishWriting()
      for try await _ in call.responses {}
    }
    try require(error.message == text, "the message is \(error.message.debugDescription)")
  }

  private func requireUnaryStatus(_ status: GRPCTesting.EchoStatus) async throws {
    let error = try await requireFailure(.unknown) {
      _ = try await service.unaryCall(GRPCTesting.SimpleRequest(responseStatus: status))
    }
    try require(error.message == status.message, "the message is \(error.message.debugDescription)")
  }

  private func unimplementedMethod() async throws {
    try await requireFailure(.unimplemented) { _ = try await service.unimplementedCall(GRPCTesting.Empty()) }
  }

  private func unimplementedService() async throws {
    try await requireFailure(.unimplemented) {
      _ = try await GRPCTesting.UnimplementedServiceClient(channel).unimplementedCall(GRPCTesting.Empty())
    }
  }
}

// MARK: - Calls that end early, and calls that go on

extension InteropCases {
  private func cancelAfterBegin() async throws {
    let call = try await service.streamingInputCall()
    call.cancel()
    try await requireFailure(.cancelled) { _ = try await call.finish() }
  }

  private func cancelAfterFirstResponse() async throws {
    let call = try await service.fullDuplexCall()
    var responses = call.responses.makeAsyncIterator()
    try await call.write(Self.ask(31415, payload: 27182))
    try require(try await responses.next()?.payload == Self.payload(31415), "the answer is not 31415 zero bytes")
    call.cancel()
    try await requireFailure(.cancelled) { while try await responses.next() != nil {} }
  }

  private func timeoutOnSleepingServer() async throws {
    try await requireFailure(.deadlineExceeded) {
      let call = try await service.fullDuplexCall(CallOptions(timeout: .milliseconds(1)))
      // The deadline may pass before the request is out.
      try await call.write(GRPCTesting.StreamingOutputCallRequest(payload: Self.payload(27182)))
      for try await _ in call.responses {}
    }
  }

  /// None of the public cases: a server that takes a call and says nothing.
  private func slowServer() async throws {
    try await requireFailure(.deadlineExceeded) {
      _ = try await service.emptyCall(GRPCTesting.Empty(), CallOptions(timeout: .seconds(1)))
    }
  }

  private func rpcSoak() async throws {
    for _ in 0..<soakCount { try await largeCall(service) }
  }

  private func channelSoak() async throws {
    for _ in 0..<soakCount {
      let channel = Channel(target: target, group: group, tls: tls)
      try await largeCall(GRPCTesting.TestServiceClient(channel))
      await channel.shutdown()
    }
  }
}
