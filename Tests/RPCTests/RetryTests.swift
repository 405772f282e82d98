import EventLoop
import HTTP2
import Primitives
import Synchronization
import Testing

@testable import RPC

/// Calls that are repeated, and calls that must not be.
@Suite struct RetryTests {
  /// What a call to a server that answers like that comes to: its error, and the requests that were sent.
  private static func call(
    _ method: MethodDescriptor = TestService.lookUp, timeout: Duration = .seconds(20),
    _ answer: @escaping RawServer.Answer
  ) async throws -> (error: ServiceError?, requests: [[String: String]]) {
    let group = EventLoopGroup(count: 1)
    let server = try RawServer(group, answer)
    let channel = Channel(target: "127.0.0.1:\(server.port)", group: group)
    let error = await failure { let _: Note = try await channel.unary(method, Note(), CallOptions(timeout: timeout)) }
    await channel.shutdown()
    await server.close()
    await group.shutdown()
    return (error, server.requests)
  }

  private static func unavailable(_ stream: HTTP2Stream, pushback: String = "0") {
    RawServer.refuse(stream, ("grpc-status", "14"), ("grpc-retry-pushback-ms", pushback))
  }

  @Test("R3 an idempotent call is repeated until it is answered, and says how often it was")
  func repeated() async throws {
    let result = try await Self.call { index, stream in
      if index < 3 { Self.unavailable(stream) } else { RawServer.answer(stream) }
    }
    #expect(result.error == nil)
    #expect(result.requests.map { $0["grpc-previous-rpc-attempts"] } == [nil, "1", "2", "3"])
  }

  @Test("R3 five attempts are the most")
  func most() async throws {
    let result = try await Self.call { _, stream in Self.unavailable(stream) }
    #expect(result.error?.code == .unavailable)
    #expect(result.requests.count == 5)
  }

  @Test("R3 a connection that is lost before an answer counts as UNAVAILABLE")
  func lost() async throws {
    let result = try await Self.call { index, stream in
      if index == 0 { stream.session.abort() } else { RawServer.answer(stream) }
    }
    #expect(result.error == nil)
    #expect(result.requests.count == 2)
  }

  @Test("R3 a method that is not idempotent is never repeated")
  func notIdempotent() async throws {
    let result = try await Self.call(TestService.unary) { _, stream in Self.unavailable(stream) }
    #expect(result.error?.code == .unavailable)
    #expect(result.requests.count == 1)
  }

  @Test("R3 nothing is repeated after an answer has begun")
  func committed() async throws {
    let result = try await Self.call { _, stream in RawServer.answer(stream, status: "14") }
    #expect(result.error?.code == .unavailable)
    #expect(result.requests.count == 1)
  }

  @Test("R3 no other code is repeated", arguments: ["1", "4", "8", "10", "13"])
  func otherCodes(code: String) async throws {
    let result = try await Self.call { _, stream in RawServer.refuse(stream, ("grpc-status", code)) }
    #expect(result.error != nil)
    #expect(result.requests.count == 1)
  }

  @Test("R3 a server's pushback stops retries, or says when", arguments: [("-1", 1), ("soon", 1), ("1", 5)])
  func pushback(text: String, attempts: Int) async throws {
    let result = try await Self.call { _, stream in Self.unavailable(stream, pushback: text) }
    #expect(result.requests.count == attempts)
  }

  @Test("R3 a call is not repeated beyond its deadline")
  func deadline() async throws {
    let result = try await Self.call { _, stream in Self.unavailable(stream, pushback: "60000") }
    #expect(result.error?.code == .unavailable)
    #expect(result.requests.count == 1)
  }

  @Test("R3 waits grow by 1.6, and a server's pushback comes before them")
  func policy() {
    var policy = RetryPolicy()
    let waits = [RetryPolicy.Pushback.none, .none, .after(.seconds(7)), .none, .none].map { policy.next($0, dice: 1) }
    #expect(waits == [.milliseconds(50), .milliseconds(80), .seconds(7), .milliseconds(50), nil])
    var other = RetryPolicy()
    #expect(other.next(.never) == nil)
  }

  @Test("R3 with half of all calls failing, retries add a tenth at most")
  func throttle() {
    var throttle = RetryThrottle()
    var retries = 0
    for index in 0..<1000 {
      guard index % 2 == 0 else {
        throttle.succeeded()
        continue
      }
      throttle.failed()
      if throttle.isOpen { retries += 1 }
    }
    #expect(1...100 ~= retries)
  }
}
