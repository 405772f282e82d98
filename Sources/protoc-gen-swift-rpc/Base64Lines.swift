/// Bytes as base64 in lines of 96 characters.
struct Base64Lines: Sequence, IteratorProtocol {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let bytesPerLine = 72
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) {
    rest = bytes[...]
  }

  mutating func next() -> String? {
    guard !rest.isEmpty else { return nil }
    var line: [UInt8] = []
    var bytes = rest.prefix(Self.bytesPerLine)
    rest = rest.dropFirst(Self.bytesPerLine)
    while !bytes.isEmpty {
      let group = bytes.prefix(3)
      bytes = bytes.dropFirst(3)
      let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
      for index in 0...group.count { line.append(Self.alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)]) }
    }
    return String(decoding: line, as: UTF8.self)
  }
}
