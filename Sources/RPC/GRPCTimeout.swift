internal import Primitives

/// The `grpc-timeout` header: 1 to 8 digits and one of `H M S m u n`.
enum GRPCTimeout {
  /// nil for anything else than the grammar allows.
  static func parse(_ text: Span<UInt8>) -> Duration? {
    guard 2...9 ~= text.count else { return nil }
    var value: Int64 = 0
    for index in 0..<(text.count - 1) {
      let byte = text[index]
      guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
    }
    switch text[text.count - 1] {
    case UInt8(ascii: "H"): return .seconds(value * 3600)
    case UInt8(ascii: "M"): return .seconds(value * 60)
    case UInt8(ascii: "S"): return .seconds(value)
    case UInt8(ascii: "m"): return .milliseconds(value)
    case UInt8(ascii: "u"): return .microseconds(value)
    case UInt8(ascii: "n"): return .nanoseconds(value)
    default: return nil
    }
  }

  /// The header's value for a time left, in the finest unit that fits 8 digits, rounded down; "0n" for none.
  static func format(_ duration: Duration) -> String {
    let nanoseconds = max(0, duration.nanoseconds)
    let units: [(size: Int64, letter: String)] = [
      (1, "n"), (1000, "u"), (1_000_000, "m"), (1_000_000_000, "S"), (60_000_000_000, "M"), (3_600_000_000_000, "H"),
    ]
    for (size, letter) in units where nanoseconds / size <= 99_999_999 { return "\(nanoseconds / size)\(letter)" }
    return "99999999H"
  }
}
