import EventLoop
import Primitives
import Testing

@testable import RPC

@Suite struct ErrorConformanceTests {
  private struct Odd: Error {}

  private static let context = CallContext(
    method: TestService.unary, peerAddress: SocketAddress("127.0.0.1:0")!)

  /// The type names of a status's details, in order.
  private static func details(_ error: ServiceError) -> [String] {
    var names: [String] = []
    DetailReader.forEachField(StatusDetails.encode(error)[...]) { number, field in
      guard number == 3, case .bytes(let any) = field else { return }
      DetailReader.forEachField(any) { number, field in
        guard number == 1, case .bytes(let name) = field else { return }
        names.append(String(decoding: name, as: UTF8.self))
      }
    }
    return names
  }

  @Test("RPC every error has exactly one ErrorInfo, and nothing twice", arguments: ServiceError.Code.allCases)
  func details(code: ServiceError.Code) {
    let error = ServiceError(
      code, "m", reason: "not a reason", violations: [.init(field: "f", description: "d")], retryAfter: .seconds(2))
    let names = Self.details(ErrorConformance.conforming(error, Self.context))
    #expect(names.filter { $0.hasSuffix("ErrorInfo") }.count == 1)
    #expect(Set(names).count == names.count)
  }

  @Test(
    "RPC a reason is UPPER_SNAKE of at most 63 characters, or the code's name takes its place",
    arguments: [
      ("LINK_SPENT", "LINK_SPENT"), (String(repeating: "A", count: 63), String(repeating: "A", count: 63)),
      (String(repeating: "A", count: 64), "ABORTED"), ("", "ABORTED"), ("lower", "ABORTED"), ("A B", "ABORTED"),
    ])
  func reason(given: String, expected: String) {
    let error = ErrorConformance.conforming(ServiceError(.aborted, "m", reason: given), Self.context)
    #expect(error.reason == expected && error.message == "m" && error.code == .aborted)
  }

  @Test("RPC only a fault has a request id, and one that came from further on stays")
  func requestID() {
    let fault = ErrorConformance.conforming(.internal(cause: Odd()), Self.context)
    #expect(fault.requestID == Self.context.trace.spanIDText && fault.cause is Odd)
    #expect(ErrorConformance.conforming(.notFound("x"), Self.context).requestID == nil)
    var relayed = ServiceError(.internal, "m", reason: "odd reason")
    relayed.requestID = "0123456789abcdef"
    #expect(ErrorConformance.conforming(relayed, Self.context).requestID == "0123456789abcdef")
  }

  @Test("RPC UNAVAILABLE says when to try again")
  func retry() {
    let error = ErrorConformance.conforming(ServiceError(.unavailable, "m"), Self.context)
    #expect(error.retryAfter == .seconds(1))
    #expect(Self.details(error).contains("type.googleapis.com/google.rpc.RetryInfo"))
    #expect(ErrorConformance.conforming(ServiceError(.aborted, "m"), Self.context).retryAfter == nil)
  }

  @Test("RPC a request id travels in ErrorInfo")
  func travels() {
    var error = ServiceError(.internal, "m", reason: "R")
    error.requestID = "0123456789abcdef"
    let decoded = StatusDetails.decode(StatusDetails.encode(error), code: .internal, message: "m")
    #expect(decoded.requestID == "0123456789abcdef" && decoded.reason == "R")
    #expect(StatusDetails.decode(StatusDetails.encode(.notFound("x")), code: .notFound, message: "m").requestID == nil)
  }
}
