/// A UUID, 128 bits, shown as 36 lower-case characters. New ones are version 7 (RFC 9562 §5.7): they begin with
/// the time in milliseconds, so rows created together lie together.
package struct Identifier: Hashable, Sendable, Comparable, CustomStringConvertible {
  package let high: UInt64
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A new version 7 identifier.
  package init() {
    self.init(at: Instant.now())
  }

  /// A new version 7 identifier for a given time; 74 of its bits are random.
  package init(at time: Instant) {
    var generator = SystemRandomNumberGenerator()
    let milliseconds = UInt64(bitPattern: time.microseconds / 1000)
    high = milliseconds << 16 | 0x7000 | (generator.next() & 0x0FFF)
    low = 0x8000_0000_0000_0000 | (generator.next() >> 2)
  }

  /// Reads the canonical text form, in either case; nil for anything else.
  package init?(_ text: some StringProtocol) {
    var high: UInt64 = 0
    var low: UInt64 = 0
    var index = 0
    var digits = 0
    for byte in text.utf8 {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
      } else {
        guard let value = Hex.value(byte) else { return nil }
        if digits < 16 { high = high << 4 | UInt64(value) } else { low = low << 4 | UInt64(value) }
        digits += 1
      }
      index += 1
    }
    guard index == 36, digits == 32 else { return nil }
    self.init(high: high, low: low)
  }

  /// Reads 16 bytes in network order; nil for any other count.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    var high: UInt64 = 0
    var low: UInt64 = 0
    for (index, byte) in bytes.enumerated() {
      if index < 8 { high = high << 8 | UInt64(byte) } else { low = low << 8 | UInt64(byte) }
    }
    self.init(high: high, low: low)
  }

  /// The 16 bytes in network order.
  package var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
      for index in 0..<8 {
        buffer[index] = UInt8(truncatingIfNeeded: high >> UInt64(56 - index * 8))
        buffer[index + 8] = UInt8(truncatingIfNeeded: low >> UInt64(56 - index * 8))
      }
      count = 16
    }
  }

  package var description: String {
    String(unsafeUninitializedCapacity: 36) { buffer in
      var position = 0
      for index in 0..<16 {
        if index == 4 || index == 6 || index == 8 || index == 10 {
          buffer[position] = UInt8(ascii: "-")
          position += 1
        }
        let word = index < 8 ? high : low
        let byte = UInt8(truncatingIfNeeded: word >> UInt64(56 - (index & 7) * 8))
        buffer[position] = Hex.digit(byte >> 4)
        buffer[position + 1] = Hex.digit(byte & 15)
        position += 2
      }
      return 36
    }
  }

  package static func < (left: Identifier, right: Identifier) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }
}
