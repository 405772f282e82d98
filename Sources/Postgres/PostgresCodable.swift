package import Primitives

/// The OID of a type in PostgreSQL's catalogue.
package struct PostgresType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package let rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  static let bool = PostgresType(rawValue: 16)
  static let bytea = PostgresType(rawValue: 17)
  static let name = PostgresType(rawValue: 19)
  static let int8 = PostgresType(rawValue: 20)
  static let int2 = PostgresType(rawValue: 21)
  static let int4 = PostgresType(rawValue: 23)
  static let text = PostgresType(rawValue: 25)
  static let float4 = PostgresType(rawValue: 700)
  static let float8 = PostgresType(rawValue: 701)
  static let unknown = PostgresType(rawValue: 705)
  static let boolArray = PostgresType(rawValue: 1000)
  static let byteaArray = PostgresType(rawValue: 1001)
  static let int2Array = PostgresType(rawValue: 1005)
  static let int4Array = PostgresType(rawValue: 1007)
  static let textArray = PostgresType(rawValue: 1009)
  static let int8Array = PostgresType(rawValue: 1016)
  static let float8Array = PostgresType(rawValue: 1022)
  static let bpchar = PostgresType(rawValue: 1042)
  static let varchar = PostgresType(rawValue: 1043)
  static let date = PostgresType(rawValue: 1082)
  static let dateArray = PostgresType(rawValue: 1182)
  static let timestamptz = PostgresType(rawValue: 1184)
  static let timestamptzArray = PostgresType(rawValue: 1185)
  static let uuid = PostgresType(rawValue: 2950)
  static let uuidArray = PostgresType(rawValue: 2951)

  private static let names: [PostgresType: String] = [
    .bool: "boolean", .bytea: "bytea", .name: "name", .int8: "bigint", .int2: "smallint", .int4: "integer",
    .text: "text", .float4: "real", .float8: "double precision", .boolArray: "boolean[]", .byteaArray: "bytea[]",
    .int2Array: "smallint[]", .int4Array: "integer[]", .textArray: "text[]", .int8Array: "bigint[]",
    .float8Array: "double precision[]", .bpchar: "character", .varchar: "character varying", .date: "date",
    .dateArray: "date[]", .timestamptz: "timestamptz", .timestamptzArray: "timestamptz[]", .uuid: "uuid",
    .uuidArray: "uuid[]", PostgresType(rawValue: 1700): "numeric", PostgresType(rawValue: 1114): "timestamp",
    PostgresType(rawValue: 1186): "interval", PostgresType(rawValue: 3802): "jsonb",
  ]

  package var description: String { PostgresType.names[self] ?? "type \(rawValue)" }
}

/// Why a field does not hold the Swift value that was asked for.
package enum FieldFault: Error, Sendable, Equatable {
  case isNull
  case wrongType
  /// The bytes are no value of the type, or one that Swift's type cannot hold.
  case malformed
}

/// A Swift type that can be a parameter or a column, in PostgreSQL's binary form.
package protocol PostgresCodable: Sendable {
  /// The type its parameters are declared as.
  static var postgresType: PostgresType { get }
  /// Whether a column of this type can be read.
  static func reads(_ type: PostgresType) -> Bool
  /// Appends the binary form; false means NULL, with nothing appended.
  func encode(to bytes: inout [UInt8]) -> Bool
  /// Reads the binary form; `bytes` is nil for NULL, `type` has passed `reads`.
  static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Self
}

extension PostgresCodable {
  package static func reads(_ type: PostgresType) -> Bool { type == postgresType }
}

/// nil is NULL.
extension Optional: PostgresCodable where Wrapped: PostgresCodable {
  package static var postgresType: PostgresType { Wrapped.postgresType }
  package static func reads(_ type: PostgresType) -> Bool { Wrapped.reads(type) }
  package func encode(to bytes: inout [UInt8]) -> Bool { self?.encode(to: &bytes) ?? false }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Wrapped? {
    guard let bytes else { return nil }
    return try Wrapped.decode(bytes, type)
  }
}

/// An enumeration over `String` or an integer: declare the conformance and this does the rest. An unknown value in
/// the column is a fault.
extension PostgresCodable where Self: RawRepresentable, RawValue: PostgresCodable {
  package static var postgresType: PostgresType { RawValue.postgresType }
  package static func reads(_ type: PostgresType) -> Bool { RawValue.reads(type) }
  package func encode(to bytes: inout [UInt8]) -> Bool { rawValue.encode(to: &bytes) }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Self {
    guard let value = Self(rawValue: try RawValue.decode(bytes, type)) else { throw .malformed }
    return value
  }
}

extension Bool: PostgresCodable {
  package static var postgresType: PostgresType { .bool }
  package func encode(to bytes: inout [UInt8]) -> Bool {
    bytes.append(self ? 1 : 0)
    return true
  }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Bool {
    try BigEndian.read(bytes, as: UInt8.self) != 0
  }
}

extension Int16: PostgresCodable {
  package static var postgresType: PostgresType { .int2 }
  package func encode(to bytes: inout [UInt8]) -> Bool { BigEndian.append(self, to: &bytes) }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Int16 {
    try BigEndian.read(bytes, as: Int16.self)
  }
}

/// Reads `integer` and `smallint`.
extension Int32: PostgresCodable {
  package static var postgresType: PostgresType { .int4 }
  package static func reads(_ type: PostgresType) -> Bool { type == .int4 || type == .int2 }
  package func encode(to bytes: inout [UInt8]) -> Bool { BigEndian.append(self, to: &bytes) }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Int32 {
    type == .int4 ? try BigEndian.read(bytes, as: Int32.self) : Int32(try BigEndian.read(bytes, as: Int16.self))
  }
}

/// Reads `bigint`, `integer` and `smallint`.
extension Int64: PostgresCodable {
  package static var postgresType: PostgresType { .int8 }
  package static func reads(_ type: PostgresType) -> Bool { type == .int8 || type == .int4 || type == .int2 }
  package func encode(to bytes: inout [UInt8]) -> Bool { BigEndian.append(self, to: &bytes) }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Int64 {
    switch type {
    case .int8: try BigEndian.read(bytes, as: Int64.self)
    case .int4: Int64(try BigEndian.read(bytes, as: Int32.self))
    default: Int64(try BigEndian.read(bytes, as: Int16.self))
    }
  }
}

/// As `Int64`.
extension Int: PostgresCodable {
  package static var postgresType: PostgresType { .int8 }
  package static func reads(_ type: PostgresType) -> Bool { Int64.reads(type) }
  package func encode(to bytes: inout [UInt8]) -> Bool { Int64(self).encode(to: &bytes) }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Int {
    Int(try Int64.decode(bytes, type))
  }
}

/// Reads `double precision` and `real`.
extension Double: PostgresCodable {
  package static var postgresType: PostgresType { .float8 }
  package static func reads(_ type: PostgresType) -> Bool { type == .float8 || type == .float4 }
  package func encode(to bytes: inout [UInt8]) -> Bool { BigEndian.append(bitPattern, to: &bytes) }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Double {
    type == .float8
      ? Double(bitPattern: try BigEndian.read(bytes, as: UInt64.self))
      : Double(Float(bitPattern: try BigEndian.read(bytes, as: UInt32.self)))
  }
}

/// PostgreSQL refuses text that holds U+0000 (SQLSTATE 22021).
extension String: PostgresCodable {
  package static var postgresType: PostgresType { .text }
  package static func reads(_ type: PostgresType) -> Bool {
    switch type {
    case .text, .varchar, .bpchar, .name, .unknown: true
    default: false
    }
  }
  package func encode(to bytes: inout [UInt8]) -> Bool {
    bytes.append(contentsOf: utf8)
    return true
  }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> String {
    guard let bytes else { throw .isNull }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension Identifier: PostgresCodable {
  package static var postgresType: PostgresType { .uuid }
  package func encode(to bytes: inout [UInt8]) -> Bool {
    BigEndian.append(high, to: &bytes) && BigEndian.append(low, to: &bytes)
  }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Identifier {
    guard let bytes else { throw .isNull }
    guard bytes.count == 16 else { throw .malformed }
    return Identifier(
      high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
      low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
  }
}

/// PostgreSQL's `infinity` cannot be read; a time outside its range (4713 BC to 294276) is refused by the server.
extension Instant: PostgresCodable {
  /// 2000-01-01 in microseconds since 1970.
  private static let origin: Int64 = 946_684_800_000_000

  package static var postgresType: PostgresType { .timestamptz }
  package func encode(to bytes: inout [UInt8]) -> Bool {
    let (shifted, overflow) = microseconds.subtractingReportingOverflow(Instant.origin)
    // The two ends of Int64 mean -infinity and infinity: stay clear of both.
    return BigEndian.append(overflow ? .min + 1 : max(shifted, .min + 1), to: &bytes)
  }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> Instant {
    let (sum, overflow) = try BigEndian.read(bytes, as: Int64.self).addingReportingOverflow(origin)
    guard !overflow, sum != .min + origin else { throw .malformed }
    return Instant(microseconds: sum)
  }
}

/// A date outside the years 1 to 9999 cannot be read.
extension CivilDate: PostgresCodable {
  /// 2000-01-01 in days since 1970.
  private static let origin = 10_957

  package static var postgresType: PostgresType { .date }
  package func encode(to bytes: inout [UInt8]) -> Bool {
    BigEndian.append(Int32(daysSinceEpoch - CivilDate.origin), to: &bytes)
  }
  package static func decode(_ bytes: UnsafeRawBufferPointer?, _ type: PostgresType) throws(FieldFault) -> CivilDate {
    let days = Int(try BigEndian.read(bytes, as: Int32.self)) + origin
    guard (-719_162...2_932_896).contains(days) else { throw .malformed }
    return CivilDate(daysSinceEpoch: days)
  }
}

/// Integers in network order.
enum BigEndian {
  @discardableResult
  static func append<Value: FixedWidthInteger>(_ value: Value, to bytes: inout [UInt8]) -> Bool {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    return true
  }

  static func read<Value: FixedWidthInteger & BitwiseCopyable>(
    _ bytes: UnsafeRawBufferPointer?, as type: Value.Type
  ) throws(FieldFault) -> Value {
    guard let bytes else { throw .isNull }
    guard bytes.count == MemoryLayout<Value>.size else { throw .malformed }
    return Value(bigEndian: bytes.loadUnaligned(as: Value.self))
  }
}
