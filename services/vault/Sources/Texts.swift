internal import Primitives

/// Texts that are kept exactly as they were written.
enum Texts {
  /// Whether there is a control character other than line feed, carriage return and tab: C0, DEL or C1 (U+0080 to
  /// U+009F). Looks at bytes only, so that a letter of the largest size costs about a millisecond.
  static func holdsControls(_ text: String) -> Bool {
    var previous: UInt8 = 0
    for byte in text.utf8 {
      if byte < 0x20 ? byte != 0x0A && byte != 0x0D && byte != 0x09 : byte == 0x7F { return true }
      if previous == 0xC2, byte < 0xA0 { return true }
      previous = byte
    }
    return false
  }

  static func isBlank(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { $0.properties.isWhitespace || $0.properties.isDefaultIgnorableCodePoint }
  }

  /// Whether it has more than `max` characters as people count them, or so many bytes that it cannot be meant.
  static func exceeds(_ text: String, characters max: Int) -> Bool {
    text.utf8.count > max && (text.utf8.count > 32 * max || text.count > max)
  }
}
