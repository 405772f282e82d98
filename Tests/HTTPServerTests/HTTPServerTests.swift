import EventLoop
import HTTPServer
import Primitives
import Synchronization
import Testing

struct HTTPServerTests {
  private let group = EventLoopGroup(count: 1)
  private var loop: EventLoop { group.loops[0] }

  private func serve(
    _ handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) throws -> HTTPServer {
    try HTTPServer(address: .v4(0x7f00_0001, port: 0), loop: loop, handler: handler)
  }

  private func get(_ server: HTTPServer, _ target: String, method: String = "GET", _ headers: String = "")
    async throws -> RawClient.Answer?
  {
    try await RawClient.send(
      "\(method) \(target) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(headers)\r\n", port: server.port, loop: loop)
  }

  private func post(
    _ server: HTTPServer, _ body: String, type: String = "application/x-www-form-urlencoded"
  ) async throws -> RawClient.Answer? {
    try await RawClient.send(
      "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: \(type)\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)", port: server.port, loop: loop)
  }

  private func end(_ server: HTTPServer) async {
    await server.shutdown(grace: .seconds(5))
    await group.shutdown()
  }

  @Test("HTTPServer GET gives the handler method, path, query and headers, on the loop")
  func plainGet() async throws {
    let loop = loop
    let server = try serve { request in
      await Task.yield()
      return .text(
        "\(request.method) \(request.path) \(request.query["q"] ?? "-") \(request.headers["x-thing"] ?? "-") "
          + "\(request.peerAddress.isLoopback) \(loop.isCurrent)")
    }
    let answer = try #require(try await get(server, "/a/b?q=1+2%263&q=9", "X-Thing: v\r\n"))
    #expect(answer.status == 200)
    #expect(answer.body == "GET /a/b 1 2&3 v true true")
    #expect(answer.head.contains("Content-Type: text/plain; charset=utf-8"))
    await end(server)
  }

  @Test("HTTPServer HEAD is answered like GET, with the length and without the body")
  func head() async throws {
    let server = try serve { .text($0.method + "!") }
    let answer = try #require(try await get(server, "/", method: "HEAD"))
    #expect(answer.status == 200)
    #expect(answer.head.contains("Content-Length: 4"))
    #expect(answer.body.isEmpty)
    await end(server)
  }

  @Test(
    "HTTPServer other methods get 405 and the list of those that work", arguments: ["PUT", "DELETE", "OPTIONS", "X"])
  func otherMethods(_ method: String) async throws {
    let server = try serve { _ in .text("no") }
    let answer = try #require(try await get(server, "/", method: method))
    #expect(answer.status == 405)
    #expect(answer.head.contains("Allow: GET, HEAD, POST"))
    await end(server)
  }

  @Test("HTTPServer a form's fields are decoded as browsers encode them")
  func form() async throws {
    let server = try serve { request in
      .text(request.form.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ";"))
    }
    let answer = try #require(
      try await post(
        server, "a=1+2&b=%C3%A9%26&c=100%&d=%zz%4&a=second&&e&=f",
        type: "application/x-www-form-urlencoded; charset=UTF-8"))
    #expect(answer.body == "=f;a=1 2;b=é&;c=100%;d=%zz%4;e=")
    await end(server)
  }

  @Test("HTTPServer a body of another type is left as it is")
  func otherBody() async throws {
    let server = try serve { .text("\($0.form.count) \(String(decoding: $0.body, as: UTF8.self))") }
    #expect(try await post(server, "a=1", type: "text/plain")?.body == "0 a=1")
    await end(server)
  }

  @Test("HTTPServer cookies are read from every Cookie header, the first of a name wins")
  func cookies() async throws {
    let server = try serve { request in
      .text(request.cookies.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "|"))
    }
    let answer = try await get(server, "/", "Cookie: a=1; b=\"x y\";c==;a=2; nothing; =z\r\nCookie: d=4\r\n")
    #expect(answer?.body == "a=1|b=x y|c==|d=4")
    await end(server)
  }

  @Test("HTTPServer a path keeps its dot segments and escaped slashes apart from what routes")
  func paths() async throws {
    let server = try serve { .text("\($0.rawPath) \($0.path) \($0.segments)") }
    #expect(
      try await get(server, "/a/../%2e%2e/b%2Fc")?.body == #"/a/../%2e%2e/b%2Fc /a/../../b/c ["a", "..", "..", "b/c"]"#)
    #expect(try await get(server, "http://x/y?z")?.body == #"/y /y ["y"]"#)
    await end(server)
  }

  @Test("HTTPServer a target that cannot be decoded gets 400", arguments: ["/%", "/%zz", "/%00", "/%ff", "nothing"])
  func malformedTargets(_ target: String) async throws {
    let server = try serve { _ in .text("served") }
    #expect(try await get(server, target)?.status == 400)
    await end(server)
  }

  @Test("HTTPServer a body of 64 KiB is taken and one byte more gets 413, announced or chunked")
  func bodyLimit() async throws {
    let server = try serve { .text("\($0.body.count)") }
    let most = String(repeating: "x", count: 64 * 1024)
    #expect(try await post(server, most)?.body == "65536")
    #expect(try await post(server, most + "x")?.status == 413)
    let chunked = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    let most16 = "10000\r\n\(most)\r\n"
    #expect(try await RawClient.send(chunked + most16 + "0\r\n\r\n", port: server.port, loop: loop)?.body == "65536")
    #expect(
      try await RawClient.send(chunked + most16 + "1\r\nx\r\n0\r\n\r\n", port: server.port, loop: loop)?.status == 413)
    await end(server)
  }

  @Test("HTTPServer more than 256 fields get 400 and headers beyond the limit 431")
  func otherLimits() async throws {
    let server = try serve { _ in .text("served") }
    let fields = (0..<256).map { "f\($0)=" }.joined(separator: "&")
    #expect(try await post(server, fields)?.status == 200)
    #expect(try await post(server, fields + "&g=")?.status == 400)
    #expect(try await get(server, "/", "X-Long: \(String(repeating: "y", count: 40_000))\r\n")?.status == 431)
    await end(server)
  }

  @Test("HTTPServer a request with both a length and chunks gets 400")
  func smuggling() async throws {
    let server = try serve { _ in .text("served") }
    let answer = try await RawClient.send(
      "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      port: server.port, loop: loop)
    #expect(answer?.status == 400)
    await end(server)
  }

  @Test("HTTPServer twenty handlers wait at once")
  func parallelHandlers() async throws {
    let shared = Shared(Mutex<[CheckedContinuation<Void, Never>]>([]))
    let server = try serve { _ in
      await withCheckedContinuation { continuation in
        let all = shared.value.withLock { waiting in
          waiting.append(continuation)
          return waiting.count == 20 ? waiting : []
        }
        for continuation in all { continuation.resume() }
      }
      return .text("done")
    }
    try await withThrowingTaskGroup(of: String?.self) { tasks in
      for _ in 0..<20 { tasks.addTask { try await get(server, "/")?.body } }
      for try await body in tasks { #expect(body == "done") }
    }
    await end(server)
  }

  @Test("HTTPServer a connection carries several requests, in order")
  func keepAlive() async throws {
    let server = try serve { request in
      await Task.yield()
      return .text(request.path)
    }
    let answer = try await RawClient.send(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", port: server.port,
      loop: loop)
    #expect(answer?.body.hasPrefix("/1HTTP/1.1 200") == true)
    #expect(answer?.body.hasSuffix("/2") == true)
    await end(server)
  }

  @Test("HTTPServer repeated headers are sent, and one with a line break in it becomes 500")
  func responseHeaders() async throws {
    let server = try serve { request in
      request.path == "/bad"
        ? HTTPResponse(headers: [("X-A", "1\r\nX-B: 2")])
        : HTTPResponse(status: 303, headers: [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Location", "/")])
    }
    let good = try #require(try await get(server, "/"))
    #expect(good.status == 303)
    #expect(good.head.contains("Set-Cookie: a=1") && good.head.contains("Set-Cookie: b=2"))
    let bad = try #require(try await get(server, "/bad"))
    #expect(bad.status == 500)
    #expect(!bad.head.contains("X-B"))
    await end(server)
  }

  @Test("HTTPServer shutdown lets an open request finish and then refuses connections")
  func gracefulShutdown() async throws {
    let latch = Latch()
    let server = try serve { _ in
      await latch.arriveAndWait()
      return .text("finished")
    }
    async let answer = get(server, "/")
    await latch.arrival()
    async let ended: Void = server.shutdown(grace: .seconds(60))
    // The shutdown has begun when a new connection is refused.
    while (try? await ByteStream.connect(to: .v4(0x7f00_0001, port: UInt16(server.port)), on: loop)) != nil {}
    latch.open()
    #expect(try await answer?.body == "finished")
    await ended
    await group.shutdown()
  }

  @Test("HTTPServer a request still open after the grace gets 503, and its handler's late answer goes nowhere")
  func endOfGrace() async throws {
    let latch = Latch()
    let server = try serve { _ in
      await latch.arriveAndWait()
      return .text("late")
    }
    async let answer = get(server, "/")
    await latch.arrival()
    await server.shutdown(grace: .zero)
    #expect(try await answer?.status == 503)
    latch.open()
    await group.shutdown()
  }

  @Test("HTTPServer a client that leaves while its handler runs harms nothing")
  func clientLeaves() async throws {
    let latch = Latch()
    let server = try serve { request in
      if request.path == "/slow" { await latch.arriveAndWait() }
      return .text("here")
    }
    let stream = try await ByteStream.connect(to: .v4(0x7f00_0001, port: UInt16(server.port)), on: loop)
    await Task(executorPreference: loop) { stream.write(Array("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n".utf8)) }.value
    await latch.arrival()
    await Task(executorPreference: loop) { stream.abort() }.value
    latch.open()
    #expect(try await get(server, "/")?.body == "here")
    await end(server)
  }
}

/// A handler waits in it until it is opened; the test waits for the handler.
final class Latch: Sendable {
  private let arrivals = AsyncStream<Void>.makeStream()
  private let openings = AsyncStream<Void>.makeStream()

  func arriveAndWait() async {
    arrivals.continuation.yield()
    for await _ in openings.stream { return }
  }

  func arrival() async {
    for await _ in arrivals.stream { return }
  }

  func open() { openings.continuation.yield() }
}

final class Shared<Value: ~Copyable & Sendable>: Sendable {
  let value: Value
  init(_ value: consuming Value) { self.value = value }
}
