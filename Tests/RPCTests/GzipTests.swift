import HTTP2
import Primitives
import Synchronization
import Testing

@testable import RPC

/// Messages compressed by negotiation.
@Suite struct GzipTests {
  /// Answers with the request, compressed when the client takes that.
  private static let compressing = MethodHandler.unary(TestService.unary) { (note: Note, _: CallContext) in note }
    .compressingResponses()

  /// Says in its first byte whether the request came compressed.
  private static let reporting = MethodHandler.unary(TestService.unary) { (note: Note, context: CallContext) in
    Note(context.isRequestCompressed ? "yes" : "no")
  }

  private static func framed(_ note: Note) throws -> [UInt8] { Frame.compressed(Frame.encode(note)) }

  @Test(
    "RPC gzip comes back unchanged, and only where it saves bytes", arguments: [0, 1, 63, 64, 1000, 100_000, 4_000_000])
  func roundTrip(size: Int) throws {
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 7) }
    guard let packed = Gzip.compress([9, 9, 9] + bytes, from: 3) else { return #expect(size < 64) }
    #expect(packed.count < size)
    #expect(packed[..<3] == [0, 0, 0])
    #expect(try Gzip.inflate(Array(packed[3...]), bytesMax: size) == bytes)
    #expect(throws: Gzip.InflateError.tooLarge) { try Gzip.inflate(Array(packed[3...]), bytesMax: size - 1) }
  }

  @Test("RPC what gzip would make longer stays as it is")
  func incompressible() {
    var generator = SystemRandomNumberGenerator()
    let bytes = (0..<1000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    #expect(Gzip.compress(bytes, from: 0) == nil)
    #expect(Frame.compressed([0, 0, 0, 3, 0xE8] + bytes) == [0, 0, 0, 3, 0xE8] + bytes)
  }

  @Test("T10 gzip that is cut, damaged or followed by something is refused")
  func malformed() throws {
    let packed = try #require(Gzip.compress(Array(repeating: 5, count: 1000), from: 0))
    for length in 0..<packed.count {
      #expect(throws: Gzip.InflateError.malformed) { try Gzip.inflate(Array(packed[..<length]), bytesMax: 1000) }
    }
    #expect(throws: Gzip.InflateError.malformed) { try Gzip.inflate(packed + [0], bytesMax: 1000) }
    for index in [0, 1, packed.count - 8, packed.count - 1] {
      var damaged = packed
      damaged[index] ^= 0xFF
      #expect(throws: Gzip.InflateError.malformed) { try Gzip.inflate(damaged, bytesMax: 1000) }
    }
  }

  @Test(
    "RPC a response is compressed only for a client that takes gzip, and when the method asks",
    arguments: [
      ("identity, deflate, gzip", true, 1), ("gzip", true, 1), ("identity", true, 0), ("gzipped,xgzip", true, 0),
      (nil, true, 0), ("gzip", false, 0),
    ] as [(String?, Bool, UInt8)])
  func response(accepted: String?, isAsked: Bool, flag: UInt8) async throws {
    let response = try await WireTests.response(
      "/test.Notes/Unary", [("grpc-accept-encoding", accepted)], body: Frame.encode(Note(size: 1000)),
      handler: isAsked ? Self.compressing : CallTests.echo)
    #expect(response.status == "0")
    #expect(response.body.first == flag)
    #expect(response.headers["grpc-encoding"] == (flag == 1 ? "gzip" : nil))
    #expect(response.body.count < (flag == 1 ? 100 : 2000))
  }

  @Test("RPC a compressed request is read, and the handler can tell", arguments: [true, false])
  func request(isCompressed: Bool) async throws {
    let frame = Frame.encode(Note(size: 1000))
    let response = try await WireTests.response(
      "/test.Notes/Unary", [("grpc-encoding", "gzip")], body: isCompressed ? Frame.compressed(frame) : frame,
      handler: Self.reporting)
    #expect(response.status == "0")
    #expect(String(decoding: response.body.dropFirst(7), as: UTF8.self) == (isCompressed ? "yes" : "no"))
  }

  @Test("T10 a compressed message without an encoding, or a damaged one, is INTERNAL")
  func badRequest() async throws {
    let good = Frame.compressed(Frame.encode(Note(size: 1000)))
    #expect(try await WireTests.response(body: good).status == "13")
    var damaged = good
    damaged[20] ^= 0xFF
    #expect(
      try await WireTests.response("/test.Notes/Unary", [("grpc-encoding", "gzip")], body: damaged).status == "13")
  }

  @Test("T10 a gzip bomb is refused at the limit", arguments: [((4 << 20) - 5, "0"), (4 << 20, "8"), (64 << 20, "8")])
  func bomb(size: Int, status: String) async throws {
    let bomb = Frame.compressed(Frame.encode(Note(size: size)))
    #expect(bomb.count < size / 100)
    let response = try await WireTests.response(
      "/test.Notes/Unary", [("grpc-encoding", "gzip")], body: bomb, handler: Self.reporting)
    #expect(response.status == status)
  }

  @Test("RPC our own client sends and takes compressed messages, one by one as asked")
  func ownClient() async throws {
    let seen = Mutex<[Bool]>([])
    let chat = MethodHandler.bidirectional(TestService.chat) {
      (requests: RequestStream<Note>, responses: ResponseWriter<Note>, context: CallContext) in
      context.compressesResponses = true
      for try await request in requests {
        seen.withLock { $0.append(context.isRequestCompressed) }
        try await responses.write(request, compression: request.body.count % 2 == 0 ? .asCall : .off)
      }
    }
    try await Rig.run([chat, Self.compressing]) { rig in
      let options = CallOptions(timeout: .seconds(20), compressesRequests: true)
      #expect(try await rig.unary(Note(size: 100_000), options) == Note(size: 100_000))
      let call: BidirectionalCall<Note, Note> = try await rig.channel.bidirectional(TestService.chat, options)
      var answers = call.responses.makeAsyncIterator()
      for size in [1000, 1001, 1002] {
        try await call.write(Note(size: size), compression: size == 1001 ? .off : .asCall)
        #expect(try await answers.next() == Note(size: size))
      }
      try await call.finishWriting()
      #expect(try await answers.next() == nil)
      #expect(seen.withLock { $0 } == [true, false, true])
    }
  }
}
