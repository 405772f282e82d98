internal import CProtobufC

/// Checks a whole message against its type before libprotobuf-c sees it, without allocating.
///
/// libprotobuf-c accepts invalid UTF-8 and embedded NULs, reads a `bool` of any wire type, mis-merges a message field
/// that appears twice and has no depth limit. Depth is bounded here by the types: the generator refuses recursive ones.
package enum WireValidator {
  /// Most fields of one message type; the generator refuses more.
  package static let fieldsMax = 128

  package static func check(
    _ bytes: UnsafeRawBufferPointer, as type: WireType
  ) throws(DecodingError) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    let first = start.assumingMemoryBound(to: UInt8.self)
    try check(first, first + bytes.count, type.descriptor)
  }

  private static func check(
    _ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, _ type: UnsafePointer<ProtobufCMessageDescriptor>
  ) throws(DecodingError) {
    var reader = WireReader(cursor: start, end: end)
    // One bit for each singular message field that has been seen, by the field's index.
    var seen: UInt128 = 0
    while reader.cursor < end {
      guard let tag = reader.tag() else { throw failure(reader.fault, type, nil) }
      let field = field(tag >> 3, of: type)
      guard reader.skip(wireType: tag & 7) else { throw failure(reader.fault, type, field) }
      guard let field else { continue }
      let kind = field.pointee.type
      let expected = wireType(of: kind)
      let isRepeated = field.pointee.label == PROTOBUF_C_LABEL_REPEATED
      if tag & 7 != expected {
        guard isRepeated, tag & 7 == 2 else { throw failure(.wrongWireType, type, field) }
        var values = WireReader(cursor: reader.content, end: reader.cursor)
        while values.cursor < values.end {
          guard values.skip(wireType: expected) else { throw failure(values.fault, type, field) }
        }
        continue
      }
      switch kind {
      case PROTOBUF_C_TYPE_STRING:
        if let fault = UTF8Check.fault(reader.content, reader.cursor) { throw failure(fault, type, field) }
      case PROTOBUF_C_TYPE_MESSAGE:
        if !isRepeated {
          let bit: UInt128 = 1 << UInt128(field - type.pointee.fields)
          guard seen & bit == 0 else { throw failure(.repeatedMessage, type, field) }
          seen |= bit
        }
        guard let inner = field.pointee.descriptor else { throw failure(.refused, type, field) }
        try check(reader.content, reader.cursor, inner.assumingMemoryBound(to: ProtobufCMessageDescriptor.self))
      default:
        break
      }
    }
  }

  /// The field with this number, or nil for one that this version does not know.
  private static func field(
    _ number: UInt32, of type: UnsafePointer<ProtobufCMessageDescriptor>
  ) -> UnsafePointer<ProtobufCFieldDescriptor>? {
    let count = Int(type.pointee.n_fields)
    guard count > 0, let fields = type.pointee.fields else { return nil }
    let guess = Int(number) - 1
    if guess < count, fields[guess].id == number { return fields + guess }
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if fields[middle].id < number { low = middle + 1 } else { high = middle }
    }
    return low < count && fields[low].id == number ? fields + low : nil
  }

  private static func wireType(of type: ProtobufCType) -> UInt32 {
    switch type {
    case PROTOBUF_C_TYPE_SFIXED32, PROTOBUF_C_TYPE_FIXED32, PROTOBUF_C_TYPE_FLOAT: 5
    case PROTOBUF_C_TYPE_SFIXED64, PROTOBUF_C_TYPE_FIXED64, PROTOBUF_C_TYPE_DOUBLE: 1
    case PROTOBUF_C_TYPE_STRING, PROTOBUF_C_TYPE_BYTES, PROTOBUF_C_TYPE_MESSAGE: 2
    default: 0
    }
  }

  private static func failure(
    _ rule: DecodingError.Rule, _ type: UnsafePointer<ProtobufCMessageDescriptor>,
    _ field: UnsafePointer<ProtobufCFieldDescriptor>?
  ) -> DecodingError {
    DecodingError(
      rule, message: String(cString: type.pointee.name), field: field.map { String(cString: $0.pointee.name) } ?? "")
  }
}

/// Steps over wire-form values. A function that fails leaves the reason in `fault`.
private struct WireReader {
  // Safety: `cursor` never passes `end`, and both point into the caller's buffer.
  var cursor: UnsafePointer<UInt8>
  let end: UnsafePointer<UInt8>
  /// Where the bytes of the last length-prefixed value begin; they end at `cursor`.
  var content: UnsafePointer<UInt8>
  var fault = DecodingError.Rule.truncated

  init(cursor: UnsafePointer<UInt8>, end: UnsafePointer<UInt8>) {
    self.cursor = cursor
    self.end = end
    content = cursor
  }

  /// A field number of 1 to 2^29 - 1 and a wire type.
  mutating func tag() -> UInt32? {
    guard let value = varint(bytesMax: 5) else { return nil }
    guard value <= UInt64(UInt32.max), value >> 3 != 0 else {
      fault = .invalidTag
      return nil
    }
    return UInt32(value)
  }

  mutating func skip(wireType: UInt32) -> Bool {
    switch wireType {
    case 0: return varint(bytesMax: 10) != nil
    case 1: return advance(8)
    case 5: return advance(4)
    case 2:
      guard let length = varint(bytesMax: 5) else { return false }
      content = cursor
      return advance(length)
    default:
      fault = .unsupportedWireType
      return false
    }
  }

  private mutating func advance(_ count: UInt64) -> Bool {
    guard count <= UInt64(end - cursor), count <= UInt64(Int32.max) else {
      fault = .truncated
      return false
    }
    cursor += Int(count)
    return true
  }

  private mutating func varint(bytesMax: Int) -> UInt64? {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    var count = 0
    while cursor < end {
      let byte = cursor.pointee
      cursor += 1
      count += 1
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 {
        guard count < 10 || byte <= 1 else { break }
        return value
      }
      shift += 7
      if count == bytesMax { break }
    }
    fault = count == bytesMax ? .overlongVarint : .truncated
    return nil
  }
}

/// Well-formed UTF-8 (Unicode table 3-7) without a NUL.
private enum UTF8Check {
  static func fault(_ start: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) -> DecodingError.Rule? {
    var cursor = start
    while cursor < end {
      while end - cursor >= 32 {
        if (marks(cursor) | marks(cursor + 8) | marks(cursor + 16) | marks(cursor + 24)) != 0 { break }
        cursor += 32
      }
      while end - cursor >= 8, marks(cursor) == 0 { cursor += 8 }
      guard cursor < end else { return nil }
      let byte = cursor.pointee
      if byte < 0x80 {
        if byte == 0 { return .embeddedNUL }
        cursor += 1
        continue
      }
      guard let length = sequence(cursor, end - cursor) else { return .invalidUTF8 }
      cursor += length
    }
    return nil
  }

  /// 0 if none of the eight bytes here is zero or 0x80 and above.
  private static func marks(_ bytes: UnsafePointer<UInt8>) -> UInt64 {
    let word = UnsafeRawPointer(bytes).loadUnaligned(as: UInt64.self)
    return (word | (word &- 0x0101_0101_0101_0101)) & 0x8080_8080_8080_8080
  }

  /// The length of the well-formed sequence of two to four bytes here.
  private static func sequence(_ bytes: UnsafePointer<UInt8>, _ available: Int) -> Int? {
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch bytes[0] {
    case 0xC2...0xDF: length = 2
    case 0xE0:
      length = 3
      second = 0xA0...0xBF
    case 0xED:
      length = 3
      second = 0x80...0x9F
    case 0xE1...0xEF: length = 3
    case 0xF0:
      length = 4
      second = 0x90...0xBF
    case 0xF1...0xF3: length = 4
    case 0xF4:
      length = 4
      second = 0x80...0x8F
    default: return nil
    }
    guard available >= length, second.contains(bytes[1]) else { return nil }
    for index in 2..<max(length, 2) where bytes[index] & 0xC0 != 0x80 { return nil }
    return length
  }
}
