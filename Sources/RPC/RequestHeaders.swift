internal import HTTP2
internal import Primitives

/// The custom metadata of a request as received: one byte array, read only when somebody asks.
/// Each pair is a 2-byte name length, a 4-byte value length, the name, the value.
struct RequestHeaders: Sendable {
  private var bytes: [UInt8] = []

  init() {}

  init(metadata: Metadata) {
    for pair in metadata.pairs {
      switch pair.value {
      case .text(let text): append(Array(pair.name.utf8).span, Array(text.utf8).span)
      case .binary(let raw):
        append(Array(pair.name.utf8).span, Array(Base64.encode(raw, alphabet: .standard).utf8).span)
      }
    }
  }

  mutating func append(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    guard name.count <= 0xFFFF, value.count <= 0xFF_FFFF else { return }
    if bytes.isEmpty { bytes.reserveCapacity(256) }
    bytes.append(UInt8(truncatingIfNeeded: name.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: name.count))
    bytes.append(UInt8(truncatingIfNeeded: value.count >> 24))
    bytes.append(UInt8(truncatingIfNeeded: value.count >> 16))
    bytes.append(UInt8(truncatingIfNeeded: value.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: value.count))
    bytes.append(name)
    bytes.append(value)
  }

  /// The first value of that name as text.
  func value(_ name: StaticString) -> String? {
    var found: String?
    forEach { candidate, value in
      guard candidate.count == name.utf8CodeUnitCount else { return true }
      let isEqual = name.withUTF8Buffer { wanted in candidate.elementsEqual(wanted) }
      if isEqual { found = String(decoding: value, as: UTF8.self) }
      return !isEqual
    }
    return found
  }

  /// All values of that name as one list, joined by commas; nil when there is none.
  func list(_ name: StaticString) -> String? {
    var found: String?
    forEach { candidate, value in
      guard candidate.count == name.utf8CodeUnitCount else { return true }
      guard name.withUTF8Buffer({ wanted in candidate.elementsEqual(wanted) }) else { return true }
      let text = String(decoding: value, as: UTF8.self)
      found = found.map { "\($0),\(text)" } ?? text
      return true
    }
    return found
  }

  var metadata: Metadata {
    var metadata = Metadata()
    forEach { name, value in
      metadata.appendReceived(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
      return true
    }
    return metadata
  }

  /// Visits the pairs until `body` returns false.
  private func forEach(_ body: (ArraySlice<UInt8>, ArraySlice<UInt8>) -> Bool) {
    var position = 0
    while position < bytes.count {
      let nameLength = Int(bytes[position]) << 8 | Int(bytes[position + 1])
      let valueLength = bytes[(position + 2)..<(position + 6)].reduce(0) { $0 << 8 | Int($1) }
      let name = position + 6
      let value = name + nameLength
      guard body(bytes[name..<value], bytes[value..<(value + valueLength)]) else { return }
      position = value + valueLength
    }
  }
}
