/// `\+` is a plus sign that is no mark. cmark resolves escapes before the marks are looked for, so an escaped plus
/// travels through it as a noncharacter.
enum EscapedPlus {
  /// U+FDD0, as a scalar and in UTF-8.
  private static let standInScalar = Unicode.Scalar(0xFDD0 as UInt32)
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
    guard text.unicodeScalars.contains(where: { $0 == standInScalar }) else { return text }
    var output = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if scalar == standInScalar { output.append(contentsOf: plus.unicodeScalars) } else { output.append(scalar) }
    }
    return String(output)
  }

  private static func contains(_ bytes: [UInt8], _ pattern: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0] == pattern[0] && bytes[$0...].starts(with: pattern) }
  }
}
