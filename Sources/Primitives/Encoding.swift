/// Lower-case hexadecimal.
package enum Hex {
  package static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  package static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  package static func encode(_ bytes: some Collection<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
      var position = 0
      for byte in bytes {
        buffer[position] = digit(byte >> 4)
        buffer[position + 1] = digit(byte & 15)
        position += 2
      }
      return position
    }
  }

  /// nil for an odd length or a character that is no hexadecimal digit.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var result: [UInt8] = []
    var pending: UInt8?
    for byte in text.utf8 {
      guard let value = value(byte) else { return nil }
      if let first = pending {
        result.append(first << 4 | value)
        pending = nil
      } else {
        pending = value
      }
    }
    return pending == nil ? result : nil
  }
}

/// Base64 (RFC 4648 §4 and the URL-safe alphabet of §5).
package enum Base64 {
  package enum Alphabet: Sendable { case standard, urlSafe }

  private static let standard: [UInt8] = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let urlSafe: [UInt8] = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  package static func encode(
    _ bytes: some Collection<UInt8>, alphabet: Alphabet = .urlSafe, padding: Bool = false
  ) -> String {
    let digits = alphabet == .standard ? standard : urlSafe
    var output: [UInt8] = []
    output.reserveCapacity((bytes.count + 2) / 3 * 4)
    var accumulator: UInt32 = 0
    var bits: UInt32 = 0
    for byte in bytes {
      accumulator = accumulator << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        output.append(digits[Int(accumulator >> bits & 63)])
      }
    }
    if bits > 0 { output.append(digits[Int(accumulator << (6 - bits) & 63)]) }
    if padding { while output.count % 4 != 0 { output.append(UInt8(ascii: "=")) } }
    return String(decoding: output, as: UTF8.self)
  }

  /// Accepts both alphabets, padded or not; nil for any other character, a misplaced pad or stray bits.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var output: [UInt8] = []
    output.reserveCapacity(text.utf8.count / 4 * 3)
    var accumulator: UInt32 = 0
    var bits: UInt32 = 0
    var digits = 0
    var pads = 0
    for byte in text.utf8 {
      if byte == UInt8(ascii: "=") {
        pads += 1
        continue
      }
      guard pads == 0, let value = value(byte) else { return nil }
      digits += 1
      accumulator = (accumulator << 6 | UInt32(value)) & 0xFFFF
      bits += 6
      if bits >= 8 {
        bits -= 8
        output.append(UInt8(truncatingIfNeeded: accumulator >> bits))
      }
    }
    guard digits % 4 != 1, pads == 0 || (digits + pads) % 4 == 0, pads <= 2 else { return nil }
    guard accumulator & ((1 << bits) - 1) == 0 else { return nil }
    return output
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
