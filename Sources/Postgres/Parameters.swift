/// The values of a query in PostgreSQL's binary form, one after the other in one buffer.
struct Parameters: Sendable {
  struct Slot: Sendable {
    let offset: Int
    /// -1 for NULL.
    let length: Int
  }

  private(set) var types: [PostgresType] = []
  private(set) var slots: [Slot] = []
  private(set) var bytes: [UInt8] = []

  var count: Int { slots.count }

  mutating func append<Value: PostgresCodable>(_ value: Value) {
    let offset = bytes.count
    let isNull = !value.encode(to: &bytes)
    types.append(Value.postgresType)
    slots.append(Slot(offset: offset, length: isNull ? -1 : bytes.count - offset))
  }

  mutating func append(contentsOf other: Parameters) {
    let base = bytes.count
    bytes.append(contentsOf: other.bytes)
    types.append(contentsOf: other.types)
    slots.append(contentsOf: other.slots.map { Slot(offset: $0.offset + base, length: $0.length) })
  }
}

extension Parameters {
  /// The arrays that libpq's send functions take, all in binary format.
  func withPointers(
    _ body: (
      Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?
    ) -> Bool
  ) -> Bool {
    guard count > 0 else { return body(0, nil, nil, nil) }
    return bytes.withUnsafeBytes { bytes in
      withUnsafeTemporaryAllocation(of: UnsafePointer<CChar>?.self, capacity: count) { values in
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: count * 2) { numbers in
          for (index, slot) in slots.enumerated() {
            values[index] = Parameters.pointer(slot, bytes)
            numbers[index] = Int32(max(slot.length, 0))
            numbers[count + index] = 1
          }
          return body(Int32(count), values.baseAddress, numbers.baseAddress, numbers.baseAddress.map { $0 + count })
        }
      }
    }
  }

  /// nil means NULL; an empty value still needs an address.
  private static func pointer(_ slot: Slot, _ bytes: UnsafeRawBufferPointer) -> UnsafePointer<CChar>? {
    guard slot.length >= 0 else { return nil }
    guard let base = bytes.baseAddress, slot.length > 0 else { return Parameters.empty }
    return (base + slot.offset).assumingMemoryBound(to: CChar.self)
  }

  /// Safety: allocated once, never written or freed.
  private nonisolated(unsafe) static let empty: UnsafePointer<CChar> = {
    let byte = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    byte.initialize(to: 0)
    return UnsafePointer(byte)
  }()
}
