/// Appends wire-form values to memory that the caller has sized with the `size` functions beside each `write`.
@usableFromInline package struct WireWriter: ~Copyable {
  // Safety: `Message.serialized` allocates `serializedSize` bytes, and each kind writes as many as its `size` says.
  @usableFromInline package var cursor: UnsafeMutableRawPointer

  @inlinable
  package init(at start: UnsafeMutableRawPointer) {
    cursor = start
  }

  @inlinable
  package mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      cursor.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, as: UInt8.self)
      cursor += 1
      rest >>= 7
    }
    cursor.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
    cursor += 1
  }

  @inlinable
  package mutating func fixed32(_ value: UInt32) {
    cursor.storeBytes(of: value.littleEndian, as: UInt32.self)
    cursor += 4
  }

  @inlinable
  package mutating func fixed64(_ value: UInt64) {
    cursor.storeBytes(of: value.littleEndian, as: UInt64.self)
    cursor += 8
  }

  @inlinable
  package mutating func raw(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    cursor.copyMemory(from: start, byteCount: bytes.count)
    cursor += bytes.count
  }

  /// Bytes that already are in wire form, such as unknown fields.
  @inlinable
  package mutating func raw(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    bytes.withUnsafeBytes { raw($0) }
  }
}

// MARK: fields

extension WireWriter {
  @inlinable
  package mutating func tag<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type) {
    varint(UInt64(number << 3 | Kind.wireType))
  }

  /// A field that is left out at its default.
  @inlinable
  package mutating func field<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ value: Kind.Value) {
    if !Kind.isDefault(value) { present(number, kind, value) }
  }

  /// A field that is written whatever its value.
  @inlinable
  package mutating func present<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ value: Kind.Value) {
    tag(number, kind)
    Kind.write(value, to: &self)
  }

  @inlinable
  package mutating func repeated<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ values: [Kind.Value]) {
    for value in values { present(number, kind, value) }
  }

  @inlinable
  package mutating func packed<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ values: [Kind.Value]) {
    if values.isEmpty { return }
    tag(number, WireBytes.self)
    varint(UInt64(WireSize.content(kind, values)))
    for value in values { Kind.write(value, to: &self) }
  }

  @inlinable
  package mutating func map<Key: WireKind, Value: WireKind>(
    _ number: UInt32, _ key: Key.Type, _ value: Value.Type, _ entries: [Key.Value: Value.Value]
  ) where Key.Value: WireKey {
    for (name, content) in entries.sorted(by: { Key.Value.precedes($0.key, $1.key) }) {
      tag(number, WireBytes.self)
      varint(UInt64(WireSize.present(1, key, name) + WireSize.present(2, value, content)))
      present(1, key, name)
      present(2, value, content)
    }
  }
}

/// How many bytes the function of the same name of `WireWriter` appends.
@usableFromInline package enum WireSize {
  @inlinable
  package static func varint(_ value: UInt64) -> Int {
    ((63 - (value | 1).leadingZeroBitCount) * 9 + 73) / 64
  }

  @inlinable
  package static func tag(_ number: UInt32) -> Int { varint(UInt64(number << 3)) }

  @inlinable
  package static func field<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ value: Kind.Value) -> Int {
    Kind.isDefault(value) ? 0 : present(number, kind, value)
  }

  @inlinable
  package static func present<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ value: Kind.Value) -> Int {
    tag(number) + Kind.size(value)
  }

  @inlinable
  package static func repeated<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ values: [Kind.Value]) -> Int {
    values.count * tag(number) + content(kind, values)
  }

  @inlinable
  package static func packed<Kind: WireKind>(_ number: UInt32, _ kind: Kind.Type, _ values: [Kind.Value]) -> Int {
    if values.isEmpty { return 0 }
    let size = content(kind, values)
    return tag(number) + varint(UInt64(size)) + size
  }

  @inlinable
  package static func map<Key: WireKind, Value: WireKind>(
    _ number: UInt32, _ key: Key.Type, _ value: Value.Type, _ entries: [Key.Value: Value.Value]
  ) -> Int {
    var total = 0
    for (name, content) in entries {
      let size = present(1, key, name) + present(2, value, content)
      total += tag(number) + varint(UInt64(size)) + size
    }
    return total
  }

  /// The values alone, without tags.
  @inlinable
  package static func content<Kind: WireKind>(_ kind: Kind.Type, _ values: [Kind.Value]) -> Int {
    var total = 0
    for value in values { total += Kind.size(value) }
    return total
  }
}
