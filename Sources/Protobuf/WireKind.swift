/// One way to write a value: a proto field type.
@usableFromInline package protocol WireKind {
  associatedtype Value
  /// 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
  static var wireType: UInt32 { get }
  static func isDefault(_ value: Value) -> Bool
  /// Bytes of the value without its tag, with its length where it has one.
  static func size(_ value: Value) -> Int
  static func write(_ value: Value, to writer: inout WireWriter)
}

/// A kind that is a varint on the wire.
@usableFromInline package protocol WireVarint: WireKind {
  static func bits(_ value: Value) -> UInt64
}

extension WireVarint {
  @inlinable package static var wireType: UInt32 { 0 }
  @inlinable package static func isDefault(_ value: Value) -> Bool { bits(value) == 0 }
  @inlinable package static func size(_ value: Value) -> Int { WireSize.varint(bits(value)) }
  @inlinable package static func write(_ value: Value, to writer: inout WireWriter) { writer.varint(bits(value)) }
}

/// A kind that is four bytes on the wire.
@usableFromInline package protocol WireFixed32: WireKind {
  static func bits(_ value: Value) -> UInt32
}

extension WireFixed32 {
  @inlinable package static var wireType: UInt32 { 5 }
  @inlinable package static func isDefault(_ value: Value) -> Bool { bits(value) == 0 }
  @inlinable package static func size(_ value: Value) -> Int { 4 }
  @inlinable package static func write(_ value: Value, to writer: inout WireWriter) { writer.fixed32(bits(value)) }
}

/// A kind that is eight bytes on the wire.
@usableFromInline package protocol WireFixed64: WireKind {
  static func bits(_ value: Value) -> UInt64
}

extension WireFixed64 {
  @inlinable package static var wireType: UInt32 { 1 }
  @inlinable package static func isDefault(_ value: Value) -> Bool { bits(value) == 0 }
  @inlinable package static func size(_ value: Value) -> Int { 8 }
  @inlinable package static func write(_ value: Value, to writer: inout WireWriter) { writer.fixed64(bits(value)) }
}

/// `int32`; a negative value takes ten bytes.
@usableFromInline package enum WireInt32: WireVarint {
  @usableFromInline package typealias Value = Int32
  @inlinable package static func bits(_ value: Int32) -> UInt64 { UInt64(bitPattern: Int64(value)) }
}

/// `int64`
@usableFromInline package enum WireInt64: WireVarint {
  @usableFromInline package typealias Value = Int64
  @inlinable package static func bits(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) }
}

/// `uint32`
@usableFromInline package enum WireUInt32: WireVarint {
  @usableFromInline package typealias Value = UInt32
  @inlinable package static func bits(_ value: UInt32) -> UInt64 { UInt64(value) }
}

/// `uint64`
@usableFromInline package enum WireUInt64: WireVarint {
  @usableFromInline package typealias Value = UInt64
  @inlinable package static func bits(_ value: UInt64) -> UInt64 { value }
}

/// `sint32`, zigzag
@usableFromInline package enum WireSInt32: WireVarint {
  @usableFromInline package typealias Value = Int32
  @inlinable package static func bits(_ value: Int32) -> UInt64 {
    UInt64(UInt32(bitPattern: (value << 1) ^ (value >> 31)))
  }
}

/// `sint64`, zigzag
@usableFromInline package enum WireSInt64: WireVarint {
  @usableFromInline package typealias Value = Int64
  @inlinable package static func bits(_ value: Int64) -> UInt64 {
    UInt64(bitPattern: (value << 1) ^ (value >> 63))
  }
}

/// `bool`
@usableFromInline package enum WireBool: WireVarint {
  @usableFromInline package typealias Value = Bool
  @inlinable package static func bits(_ value: Bool) -> UInt64 { value ? 1 : 0 }
}

/// An enum type; unknown numbers are kept.
@usableFromInline package enum WireEnum<E: RawRepresentable<Int32>>: WireVarint {
  @usableFromInline package typealias Value = E
  @inlinable package static func bits(_ value: E) -> UInt64 { UInt64(bitPattern: Int64(value.rawValue)) }
}

/// `fixed32`
@usableFromInline package enum WireUFixed32: WireFixed32 {
  @usableFromInline package typealias Value = UInt32
  @inlinable package static func bits(_ value: UInt32) -> UInt32 { value }
}

/// `sfixed32`
@usableFromInline package enum WireSFixed32: WireFixed32 {
  @usableFromInline package typealias Value = Int32
  @inlinable package static func bits(_ value: Int32) -> UInt32 { UInt32(bitPattern: value) }
}

/// `float`; only positive zero is the default.
@usableFromInline package enum WireFloat: WireFixed32 {
  @usableFromInline package typealias Value = Float
  @inlinable package static func bits(_ value: Float) -> UInt32 { value.bitPattern }
}

/// `fixed64`
@usableFromInline package enum WireUFixed64: WireFixed64 {
  @usableFromInline package typealias Value = UInt64
  @inlinable package static func bits(_ value: UInt64) -> UInt64 { value }
}

/// `sfixed64`
@usableFromInline package enum WireSFixed64: WireFixed64 {
  @usableFromInline package typealias Value = Int64
  @inlinable package static func bits(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) }
}

/// `double`; only positive zero is the default.
@usableFromInline package enum WireDouble: WireFixed64 {
  @usableFromInline package typealias Value = Double
  @inlinable package static func bits(_ value: Double) -> UInt64 { value.bitPattern }
}

/// `string`
@usableFromInline package enum WireString: WireKind {
  @usableFromInline package typealias Value = String
  @inlinable package static var wireType: UInt32 { 2 }
  @inlinable package static func isDefault(_ value: String) -> Bool { value.utf8.isEmpty }

  @inlinable
  package static func size(_ value: String) -> Int {
    let count = value.utf8.count
    return WireSize.varint(UInt64(count)) + count
  }

  @inlinable
  package static func write(_ value: String, to writer: inout WireWriter) {
    var text = value
    text.withUTF8 { bytes in
      writer.varint(UInt64(bytes.count))
      writer.raw(UnsafeRawBufferPointer(bytes))
    }
  }
}

/// `bytes`
@usableFromInline package enum WireBytes: WireKind {
  @usableFromInline package typealias Value = [UInt8]
  @inlinable package static var wireType: UInt32 { 2 }
  @inlinable package static func isDefault(_ value: [UInt8]) -> Bool { value.isEmpty }

  @inlinable
  package static func size(_ value: [UInt8]) -> Int { WireSize.varint(UInt64(value.count)) + value.count }

  @inlinable
  package static func write(_ value: [UInt8], to writer: inout WireWriter) {
    writer.varint(UInt64(value.count))
    writer.raw(value)
  }
}

/// A message type.
@usableFromInline package enum WireMessage<M: Message>: WireKind {
  @usableFromInline package typealias Value = M
  @inlinable package static var wireType: UInt32 { 2 }
  @inlinable package static func isDefault(_ value: M) -> Bool { false }

  @inlinable
  package static func size(_ value: M) -> Int {
    let size = value.serializedSize
    return WireSize.varint(UInt64(size)) + size
  }

  @inlinable
  package static func write(_ value: M, to writer: inout WireWriter) {
    writer.varint(UInt64(value.serializedSize))
    value.write(to: &writer)
  }
}

/// A type of map keys, ordered so that a map is always written the same way.
@usableFromInline package protocol WireKey: Hashable {
  static func precedes(_ left: Self, _ right: Self) -> Bool
}

extension WireKey where Self: Comparable {
  @inlinable package static func precedes(_ left: Self, _ right: Self) -> Bool { left < right }
}

extension String: WireKey {
  /// By bytes, as other implementations order them.
  @inlinable
  package static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}
extension Int32: WireKey {}
extension Int64: WireKey {}
extension UInt32: WireKey {}
extension UInt64: WireKey {}
extension Bool: WireKey {
  @inlinable package static func precedes(_ left: Bool, _ right: Bool) -> Bool { !left && right }
}
