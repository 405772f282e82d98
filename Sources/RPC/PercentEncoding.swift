internal import Primitives

/// The encoding of `grpc-message`: printable ASCII but for `%` as it is, every other byte as `%XX`.
enum PercentEncoding {
  static func encode(_ text: String) -> String {
    if text.utf8.allSatisfy({ isPlain($0) }) { return text }
    var output: [UInt8] = []
    output.reserveCapacity(text.utf8.count + 32)
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      if isPlain(byte) {
        output.append(byte)
      } else {
        output.append(UInt8(ascii: "%"))
        output.append(digits[Int(byte >> 4)])
        output.append(digits[Int(byte & 15)])
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  /// Never fails: what is no escape stays as it is, and bytes that are no UTF-8 are replaced.
  static func decode(_ text: String) -> String {
    let bytes = Array(text.utf8)
    guard bytes.contains(UInt8(ascii: "%")) else { return text }
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = Hex.value(bytes[index + 1]),
        let low = Hex.value(bytes[index + 2])
      {
        output.append(high << 4 | low)
        index += 3
      } else {
        output.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  private static func isPlain(_ byte: UInt8) -> Bool { 0x20...0x7E ~= byte && byte != UInt8(ascii: "%") }
}
