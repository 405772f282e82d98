private import Glibc

/// A point in time, in whole microseconds since 1970-01-01T00:00:00Z: PostgreSQL's resolution.
package struct Instant: Hashable, Sendable, Comparable, CustomStringConvertible {
  package let microseconds: Int64

  package init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  package init(seconds: Int64, nanoseconds: Int32 = 0) {
    microseconds = seconds * 1_000_000 + Int64(nanoseconds) / 1000
  }

  /// The wall clock.
  package static func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Instant(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
  }

  /// Whole seconds since 1970, rounded down.
  package var seconds: Int64 {
    let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return remainder < 0 ? quotient - 1 : quotient
  }
  /// The nanoseconds after `seconds`, 0 to 999,999,000.
  package var nanoseconds: Int32 { Int32((microseconds - seconds * 1_000_000) * 1000) }

  package func advanced(by duration: Duration) -> Instant {
    Instant(microseconds: microseconds + duration.microseconds)
  }

  package func duration(to other: Instant) -> Duration {
    .microseconds(other.microseconds - microseconds)
  }

  package static func < (left: Instant, right: Instant) -> Bool { left.microseconds < right.microseconds }

  /// RFC 3339 in UTC with microseconds, such as `2026-11-30T19:31:40.000000Z`.
  package var description: String {
    var text: [UInt8] = []
    append(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the description, without making strings on the way.
  package func append(to output: inout [UInt8]) {
    let days = Int((Double(seconds) / 86400).rounded(.down))
    let date = CivilDate(daysSinceEpoch: days)
    let second = Int(seconds) - days * 86400
    func number(_ value: Int, _ digits: Int, _ end: Unicode.Scalar) {
      var divisor = 1
      for _ in 1..<digits { divisor *= 10 }
      while divisor > 0 {
        output.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / divisor % 10))
        divisor /= 10
      }
      output.append(UInt8(ascii: end))
    }
    if 0...9999 ~= date.year {
      number(date.year, 4, "-")
    } else {
      output.append(contentsOf: "\(date.year)-".utf8)
    }
    number(date.month, 2, "-")
    number(date.day, 2, "T")
    number(second / 3600, 2, ":")
    number(second / 60 % 60, 2, ":")
    number(second % 60, 2, ".")
    number(Int(nanoseconds) / 1000, 6, "Z")
  }
}

extension Duration {
  /// Whole microseconds, rounded toward zero.
  package var microseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
  /// Whole nanoseconds, clamped to what an Int64 holds.
  package var nanoseconds: Int64 {
    let (product, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return components.seconds < 0 ? .min : .max }
    let (sum, overflow2) = product.addingReportingOverflow(components.attoseconds / 1_000_000_000)
    return overflow2 ? .max : sum
  }
}

/// A reading of the monotonic clock, in nanoseconds; for deadlines and timers, never stored.
package struct Monotonic: Hashable, Sendable, Comparable {
  package let nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  package static func now() -> Monotonic {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Monotonic(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// Saturates instead of overflowing.
  package func advanced(by duration: Duration) -> Monotonic {
    let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.nanoseconds)
    return Monotonic(nanoseconds: overflow ? .max : sum)
  }

  package func duration(to other: Monotonic) -> Duration { .nanoseconds(other.nanoseconds - nanoseconds) }

  package static func < (left: Monotonic, right: Monotonic) -> Bool { left.nanoseconds < right.nanoseconds }
}
