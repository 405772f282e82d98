package import Primitives

/// An element of a one-dimensional array that can be a parameter or a column; `[UInt8]` is `bytea`.
package protocol PostgresArrayElement: Sendable {
  static var postgresArrayType: PostgresType { get }
  static func readsArray(_ type: PostgresType) -> Bool
  static func encodeArray(_ values: [Self], to bytes: inout [UInt8]) -> Bool
  static func decodeArray(_ bytes: UnsafeRawBufferPointer, _ type: PostgresType) throws(FieldFault) -> [Self]
}

extension Array: PostgresCodable where Element: PostgresArrayElement {
  package static var postgresType: PostgresType { Element.postgresArrayType }
  package static func reads(_ type: PostgresType) -> Bool { Element.readsArray(type) }
  package func encode(to bytes: inout [UInt8]) -> Bool { Element.encodeArray(self, to: &bytes) }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> [Element] {
    guard let bytes else { throw .isNull }
    return try Element.decodeArray(bytes, type)
  }
}

extension UInt8: PostgresArrayElement {
  package static var postgresArrayType: PostgresType { .bytea }
  package static func readsArray(_ type: PostgresType) -> Bool { type == .bytea }
  package static func encodeArray(_ values: [UInt8], to bytes: inout [UInt8]) -> Bool {
    bytes.append(contentsOf: values)
    return true
  }
  package static func decodeArray(
    _ bytes: UnsafeRawBufferPointer, _ type: PostgresType
  ) throws(FieldFault) -> [UInt8] {
    [UInt8](bytes)
  }
}

extension PostgresArrayElement where Self: PostgresCodable {
  package static func readsArray(_ type: PostgresType) -> Bool { type == postgresArrayType }

  /// Number of dimensions, whether it holds NULLs, element type, then per dimension its length and lower bound, then
  /// each element with its length (PostgreSQL's array_send).
  package static func encodeArray(_ values: [Self], to bytes: inout [UInt8]) -> Bool {
    BigEndian.append(Int32(values.isEmpty ? 0 : 1), to: &bytes)
    BigEndian.append(Int32(0), to: &bytes)
    BigEndian.append(postgresType.rawValue, to: &bytes)
    guard !values.isEmpty else { return true }
    BigEndian.append(Int32(values.count), to: &bytes)
    BigEndian.append(Int32(1), to: &bytes)
    for value in values {
      let start = bytes.count
      BigEndian.append(Int32(0), to: &bytes)
      _ = value.encode(to: &bytes)
      let length = Int32(bytes.count - start - 4)
      withUnsafeBytes(of: length.bigEndian) { bytes.replaceSubrange(start..<start + 4, with: $0) }
    }
    return true
  }

  /// Refuses several dimensions and NULL elements.
  package static func decodeArray(
    _ bytes: UnsafeRawBufferPointer, _ type: PostgresType
  ) throws(FieldFault) -> [Self] {
    var cursor = ArrayCursor(bytes: bytes)
    let dimensions = try cursor.integer()
    _ = try cursor.integer()
    let element = PostgresType(rawValue: UInt32(bitPattern: try cursor.integer()))
    if dimensions == 0 { return [] }
    guard dimensions == 1, Self.reads(element) else { throw .malformed }
    let count = Int(try cursor.integer())
    _ = try cursor.integer()
    guard count >= 0, count <= bytes.count / 4 else { throw .malformed }
    var values: [Self] = []
    values.reserveCapacity(count)
    for _ in 0..<count { values.append(try Self.decode(try cursor.element(), element)) }
    return values
  }
}

/// Reads the parts of an array's binary form in order.
private struct ArrayCursor {
  let bytes: UnsafeRawBufferPointer
  var position = 0

  mutating func integer() throws(FieldFault) -> Int32 {
    guard bytes.count - position >= 4 else { throw .malformed }
    defer { position += 4 }
    return Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: Int32.self))
  }

  /// nil for NULL.
  mutating func element() throws(FieldFault) -> UnsafeRawBufferPointer? {
    let length = Int(try integer())
    if length == -1 { return nil }
    guard length >= 0, bytes.count - position >= length else { throw .malformed }
    defer { position += length }
    return UnsafeRawBufferPointer(rebasing: bytes[position..<position + length])
  }
}

extension Bool: PostgresArrayElement { package static var postgresArrayType: PostgresType { .boolArray } }
extension Int16: PostgresArrayElement { package static var postgresArrayType: PostgresType { .int2Array } }
extension Int32: PostgresArrayElement { package static var postgresArrayType: PostgresType { .int4Array } }
extension Int64: PostgresArrayElement { package static var postgresArrayType: PostgresType { .int8Array } }
extension Int: PostgresArrayElement { package static var postgresArrayType: PostgresType { .int8Array } }
extension Double: PostgresArrayElement { package static var postgresArrayType: PostgresType { .float8Array } }
extension String: PostgresArrayElement { package static var postgresArrayType: PostgresType { .textArray } }
extension Identifier: PostgresArrayElement { package static var postgresArrayType: PostgresType { .uuidArray } }
extension Instant: PostgresArrayElement { package static var postgresArrayType: PostgresType { .timestamptzArray } }
extension CivilDate: PostgresArrayElement { package static var postgresArrayType: PostgresType { .dateArray } }

/// `bytea[]`.
extension Array: PostgresArrayElement where Element == UInt8 {
  package static var postgresArrayType: PostgresType { .byteaArray }
}
