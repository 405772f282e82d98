import Primitives
import Testing

@testable import HTTP2
@testable import RPC

/// The pure parts.
@Suite struct RuleTests {
  private static func cut(_ pieces: [[UInt8]], bytesMax: Int = 100) throws -> [[UInt8]] {
    var assembler = MessageAssembler(bytesMax: bytesMax)
    var messages: [[UInt8]] = []
    for piece in pieces {
      var position = 0
      while let message = try assembler.next(piece.span, &position) { messages.append(message) }
    }
    return messages
  }

  @Test("RPC the edges of messages do not depend on the edges of frames", arguments: 1...17)
  func assembler(pieceSize: Int) throws {
    let wire: [UInt8] = [0, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9]
    let pieces = stride(from: 0, to: wire.count, by: pieceSize).map {
      Array(wire[$0..<min($0 + pieceSize, wire.count)])
    }
    #expect(try Self.cut(pieces) == [[1, 2, 3], [], [9]])
  }

  @Test("T10 a message is refused at its header when it is above the limit")
  func assemblerLimit() throws {
    #expect(try Self.cut([[0, 0, 0, 0, 100] + Array(repeating: 1, count: 100)]).count == 1)
    #expect(throws: ServiceError.self) { try Self.cut([[0, 0, 0, 0, 101]]) }
  }

  @Test(
    "RPC timeouts are read in every unit",
    arguments: [
      ("1H", Duration.seconds(3600)), ("2M", .seconds(120)), ("3S", .seconds(3)), ("4m", .milliseconds(4)),
      ("5u", .microseconds(5)), ("6n", .nanoseconds(6)), ("000000001S", nil), ("99999999H", .seconds(359_999_996_400)),
    ])
  func timeout(text: String, expected: Duration?) {
    #expect(GRPCTimeout.parse(Array(text.utf8).span) == expected)
  }

  @Test(
    "RPC timeouts are written in 8 digits at most, never longer than the time left",
    arguments: [
      (Duration.nanoseconds(5), "5n"), (.milliseconds(300), "300000u"), (.seconds(3600), "3600000m"),
      (.seconds(-1), "0n"), (.seconds(1_000_000_000), "16666666M"),
    ])
  func timeoutText(duration: Duration, text: String) {
    #expect(GRPCTimeout.format(duration) == text)
  }

  @Test(
    "RPC percent-decoding never fails",
    arguments: [
      ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%41%", "A%"), ("a%20b", "a b"), ("%FF", "\u{FFFD}"),
    ])
  func percent(text: String, decoded: String) {
    #expect(PercentEncoding.decode(text) == decoded)
  }

  @Test("RPC percent-encoding comes back unchanged")
  func percentRoundTrip() {
    let text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n 100%"
    #expect(PercentEncoding.decode(PercentEncoding.encode(text)) == text)
  }

  @Test("RPC details that are cut or foreign are no reason to fail")
  func foreignDetails() {
    let error = ServiceError(.notFound, "gone", reason: "GONE", violations: [.init(field: "f", description: "d")])
    let bytes = StatusDetails.encode(error)
    for length in 0..<bytes.count {
      let decoded = StatusDetails.decode(Array(bytes[..<length]), code: .notFound, message: "gone")
      #expect(decoded.code == .notFound)
    }
    #expect(StatusDetails.decode([255, 255, 7], code: .aborted, message: "m").reason == "ABORTED")
  }

  @Test("RPC details stay within what a peer takes as trailers")
  func detailsLimit() {
    let violations = (0..<1000).map { ServiceError.FieldViolation(field: "field\($0)", description: "is wrong") }
    let bytes = StatusDetails.encode(ServiceError(.invalidArgument, "bad", violations: violations))
    #expect(bytes.count < 4096)
  }

  @Test("T5 a bucket gives its burst, then what time brings")
  func bucket() {
    var bucket = TokenBucket(HTTP2Limits.Rate(burst: 3, perSecond: 2))
    let start = Monotonic(nanoseconds: 1_000_000_000)
    func take(_ count: Int, after delay: Duration) -> [Bool] {
      (0..<count).map { _ in bucket.take(at: start.advanced(by: delay)) }
    }
    #expect(take(4, after: .zero) == [true, true, true, false])
    #expect(take(1, after: .milliseconds(499)) == [false])
    #expect(take(2, after: .milliseconds(500)) == [true, false])
    #expect(take(4, after: .seconds(60)) == [true, true, true, false])
  }

  @Test("T5 each kind of flood is counted for itself; data earns PINGs and WINDOW_UPDATEs")
  func floods() {
    let now = Monotonic(nanoseconds: 0)
    for event in FloodGuard.Event.allCases {
      var guardState = FloodGuard(limits: HTTP2Limits())
      var count = 0
      while guardState.allows(event, at: now), count < 5000 { count += 1 }
      #expect(count >= 20 && count <= 1000)
      let others = FloodGuard.Event.allCases.filter { $0 != event && !guardState.allows($0, at: now) }
      #expect(others.isEmpty)
      guardState.dataSent()
      let isForgiven = guardState.allows(event, at: now)
      #expect(isForgiven == (event == .ping || event == .windowUpdate))
    }
  }

  @Test("RPC back-off grows by 1.6 to its limit and starts again after success")
  func backoff() {
    var backoff = Backoff(initial: .seconds(1), max: .seconds(2))
    let waits = [1, 1, 1, 0.8].map { backoff.failed(dice: $0) }
    #expect(waits == [.seconds(1), .seconds(1) * 1.6, .seconds(2), .seconds(2) * 0.8])
    backoff.succeeded()
    let again = backoff.failed(dice: 1)
    #expect(again == .seconds(1))
  }
}
