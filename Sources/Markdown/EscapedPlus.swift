/// `\+` is a plus sign that is no mark. cmark resolves escapes before the marks are looked for, so an escaped plus
/// travels through it as a noncharacter.
enum EscapedPlus {
  /// U+FDD0.
  private static let standIn: [UInt8] = [0xEF, 0xB7, 0x90]

  /// The source with every escaped plus hidden; the noncharacter itself becomes U+FFFD.
  static func hide(_ source: String) -> [UInt8] {
    let bytes = Array(source.utf8)
    guard contains(bytes, [UInt8(ascii: "\\"), UInt8(ascii: "+")]) || contains(bytes, standIn) else { return bytes }
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count + bytes.count / 2)
    var position = 0
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count {
        if bytes[position + 1] == UInt8(ascii: "+") {
          output += standIn
        } else {
          output += bytes[position...position + 1]
        }
        position += 2
      } else if bytes[position...].starts(with: standIn) {
        output += Array("\u{FFFD}".utf8)
        position += standIn.count
      } else {
        output.append(bytes[position])
        position += 1
      }
    }
    return output
  }

  /// Text in which an escape counts.
  static func shown(_ text: String) -> String { replaced(text, with: "+") }

  /// Text in which a backslash is a backslash.
  static func typed(_ text: String) -> String { replaced(text, with: "\\+") }

  private static func replaced(_ text: String, with plus: String) -> String {
    let bytes = Array(text.utf8)
    guard contains(bytes, standIn) else { return text }
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var position = 0
    while position < bytes.count {
      if bytes[position...].starts(with: standIn) {
        output += plus.utf8
        position += standIn.count
      } else {
        output.append(bytes[position])
        position += 1
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  private static func contains(_ bytes: [UInt8], _ pattern: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0] == pattern[0] && bytes[$0...].starts(with: pattern) }
  }
}
