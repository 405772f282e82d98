import EventLoop
import HTTP2
import Primitives
import RPC
import Synchronization
import Testing

/// What a server answers to requests that are not as they should be, seen as bytes (wire.md).
@Suite struct WireTests {
  static func response(
    _ path: String = "/test.Notes/Unary", _ changes: [(String, String?)] = [], body: [UInt8] = [0, 0, 0, 0, 0],
    handler: MethodHandler = CallTests.echo
  ) async throws -> RawClient.Response {
    try await Rig.run(loops: 1, [handler]) { rig in
      let loop = rig.group.loops[0]
      let client = try await RawClient.connect(port: rig.server.port, on: loop)
      return await client.call(path, changes, body: body, on: loop)
    }
  }

  @Test("RPC a good answer has its status even when that is OK")
  func ok() async throws {
    let response = try await Self.response()
    #expect(response.headers[":status"] == "200")
    #expect(response.headers["content-type"] == "application/grpc")
    #expect(response.status == "0")
    #expect(response.headers["grpc-status-details-bin"] == nil)
    #expect(response.body == [0, 0, 0, 0, 0])
  }

  @Test("RPC other content types are 415", arguments: ["application/json", "application/grpcx", "text/html", ""])
  func contentType(value: String) async throws {
    let response = try await Self.response("/test.Notes/Unary", [("content-type", value)])
    #expect(response.headers[":status"] == "415")
  }

  @Test(
    "RPC content types of gRPC are served",
    arguments: [
      "application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8",
    ])
  func goodContentType(value: String) async throws {
    let response = try await Self.response("/test.Notes/Unary", [("content-type", value)])
    #expect(response.status == "0")
  }

  @Test("RPC other verbs are 405 and UNIMPLEMENTED", arguments: ["GET", "PUT", "post"])
  func verb(value: String) async throws {
    let response = try await Self.response("/test.Notes/Unary", [(":method", value)])
    #expect(response.headers[":status"] == "405")
    #expect(response.status == "12")
  }

  @Test("RPC an unknown path is UNIMPLEMENTED", arguments: ["/", "/test.Notes", "/test.Notes/unary", "/x/Unary"])
  func path(value: String) async throws {
    let response = try await Self.response(value)
    #expect(response.headers[":status"] == "200")
    #expect(response.status == "12")
  }

  @Test(
    "RPC a malformed timeout is INVALID_ARGUMENT, never no deadline",
    arguments: [
      "S", "1", "123456789S", "-1S", "1s", "1 S", "1.5S", "0x1S",
    ])
  func badTimeout(value: String) async throws {
    let response = try await Self.response("/test.Notes/Unary", [("grpc-timeout", value)])
    #expect(response.status == "3")
  }

  @Test("R1 a deadline that has passed on arrival is DEADLINE_EXCEEDED without the handler")
  func expiredOnArrival() async throws {
    let isCalled = Mutex(false)
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, _: CallContext) in
      isCalled.withLock { $0 = true }
      return note
    }
    let response = try await Self.response("/test.Notes/Unary", [("grpc-timeout", "0n")], handler: handler)
    #expect(response.status == "4")
    #expect(!isCalled.withLock { $0 })
  }

  @Test("RPC an unknown encoding is UNIMPLEMENTED and names the known ones")
  func encoding() async throws {
    let response = try await Self.response("/test.Notes/Unary", [("grpc-encoding", "br")])
    #expect(response.status == "12")
    #expect(response.headers["grpc-accept-encoding"] == "identity,gzip")
  }

  @Test(
    "T10 bodies that are no message get their status",
    arguments: [
      ([], "12"), ([0, 0, 0, 0], "13"), ([0, 0, 0, 0, 1], "13"), ([1, 0, 0, 0, 0], "13"), ([2, 0, 0, 0, 0], "13"),
      ([0, 0xFF, 0xFF, 0xFF, 0xFF], "8"), ([0, 0, 0x50, 0, 0], "8"), ([0, 0, 0, 0, 1, 0xFF], "3"),
      ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "12"),
    ] as [([UInt8], String)])
  func body(bytes: [UInt8], status: String) async throws {
    #expect(try await Self.response(body: bytes).status == status)
  }

  @Test(
    "T4 a header list above the limit is refused, one below is served",
    arguments: [
      (1000, "0"), (9000, "8"),
    ])
  func headerList(size: Int, status: String) async throws {
    let value = String(repeating: "v", count: size)
    #expect(try await Self.response("/test.Notes/Unary", [("x-long", value)]).status == status)
  }

  @Test("T4 a header list above the hard limit is reset")
  func hugeHeaderList() async throws {
    let value = String(repeating: "v", count: 20_000)
    let response = try await Self.response("/test.Notes/Unary", [("x-long", value)])
    #expect(response.status == nil)
    #expect(response.code != .noError)
  }

  @Test("RPC binary metadata is accepted padded, unpadded and in lists")
  func binaryMetadata() async throws {
    let seen = Mutex<[Metadata.Content]>([])
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, context: CallContext) in
      seen.withLock { $0 = context.metadata.pairs.filter { $0.name == "x-bin" }.map { $0.value } }
      return note
    }
    _ = try await Self.response("/test.Notes/Unary", [("x-bin", "AQ==,AQ,Ag")], handler: handler)
    #expect(seen.withLock { $0 } == [.binary([1]), .binary([1]), .binary([2])])
  }

  @Test("RPC a message is percent-encoded")
  func message() async throws {
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in
      throw ServiceError(.aborted, "50% ☺\n")
    }
    let response = try await Self.response(handler: handler)
    #expect(response.status == "10")
    #expect(response.headers["grpc-message"] == "50%25 %E2%98%BA%0A")
  }
}
