private import Primitives

/// `application/x-www-form-urlencoded` as browsers write it (WHATWG URL §5), which is also a query's form, and the
/// escapes of paths.
package enum FormEncoding {
  /// The fields in order; nil when there are more than `fieldsMax`. An escape that is none stays as it is.
  package static func decode(_ text: some Sequence<UInt8>, fieldsMax: Int) -> [(name: String, value: String)]? {
    var fields: [(name: String, value: String)] = []
    for part in Array(text).split(separator: UInt8(ascii: "&")) {
      guard fields.count < fieldsMax else { return nil }
      let equals = part.firstIndex(of: UInt8(ascii: "="))
      let name = part[..<(equals ?? part.endIndex)]
      let value = equals.map { part[($0 + 1)...] } ?? []
      fields.append((unescape(name, plusIsSpace: true).text, unescape(value, plusIsSpace: true).text))
    }
    return fields
  }

  /// The fields by name, the first of each name.
  package static func dictionary(_ fields: [(name: String, value: String)]) -> [String: String] {
    Dictionary(fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
  }

  /// A path or a part of one; nil when an escape is none, or the bytes are not UTF-8, or one of them is NUL.
  package static func decodePath(_ text: some StringProtocol) -> String? {
    let (bytes, isWhole) = unescapeBytes(Array(text.utf8)[...], plusIsSpace: false)
    guard isWhole, !bytes.contains(0) else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The cookies of a `Cookie` header (RFC 6265 §5.4), in order; quotes around a value are taken off.
  package static func decodeCookies(_ header: String) -> [(name: String, value: String)] {
    header.utf8.split(separator: UInt8(ascii: ";")).compactMap { part in
      let part = trim(part)
      guard let equals = part.firstIndex(of: UInt8(ascii: "=")), equals > part.startIndex else { return nil }
      let name = trim(part[..<equals])
      var value = trim(part[part.index(after: equals)...])
      if value.count >= 2, value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") {
        value = value.dropFirst().dropLast()
      }
      return (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
    }
  }

  private static func trim(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var text = text
    while let first = text.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
    while let last = text.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
    return text
  }

  private static func unescape(_ text: ArraySlice<UInt8>, plusIsSpace: Bool) -> (text: String, isWhole: Bool) {
    let (bytes, isWhole) = unescapeBytes(text, plusIsSpace: plusIsSpace)
    return (String(decoding: bytes, as: UTF8.self), isWhole)
  }

  private static func unescapeBytes(_ text: ArraySlice<UInt8>, plusIsSpace: Bool) -> (bytes: [UInt8], isWhole: Bool) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var isWhole = true
    var index = text.startIndex
    while index < text.endIndex {
      let byte = text[index]
      index += 1
      if byte == UInt8(ascii: "+"), plusIsSpace {
        bytes.append(UInt8(ascii: " "))
      } else if byte == UInt8(ascii: "%") {
        if index + 1 < text.endIndex, let high = Hex.value(text[index]), let low = Hex.value(text[index + 1]) {
          bytes.append(high << 4 | low)
          index += 2
        } else {
          bytes.append(byte)
          isWhole = false
        }
      } else {
        bytes.append(byte)
      }
    }
    return (bytes, isWhole)
  }
}
