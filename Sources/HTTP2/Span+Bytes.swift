internal import Glibc

/// Whole-span operations on received bytes, so that the layers above need no pointers.
extension Span where Element == UInt8 {
  /// Whether the bytes are exactly those of `text`.
  package func equals(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    // Safety: both buffers hold `count` bytes.
    return withUnsafeBufferPointer { bytes in count == 0 || memcmp(bytes.baseAddress!, text.utf8Start, count) == 0 }
  }

  /// Whether the bytes begin with those of `text`.
  package func starts(with text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    guard count >= length, length > 0 else { return length == 0 }
    // Safety: both buffers hold at least `length` bytes.
    return withUnsafeBufferPointer { bytes in memcmp(bytes.baseAddress!, text.utf8Start, length) == 0 }
  }

  /// Whether the bytes are exactly those of `other`.
  package func equals(_ other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    // Safety: both buffers hold `count` bytes.
    return withUnsafeBufferPointer { left in
      other.withUnsafeBufferPointer { right in count == 0 || memcmp(left.baseAddress!, right.baseAddress!, count) == 0 }
    }
  }

  /// The bytes as text, repaired where they are not UTF-8.
  package var text: String { withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }
}

extension Array where Element == UInt8 {
  /// Appends `count` bytes of `bytes` from `start` on; the range must lie within it.
  package mutating func append(_ bytes: Span<UInt8>, from start: Int, count: Int) {
    precondition(start >= 0 && count >= 0 && start + count <= bytes.count)
    bytes.withUnsafeBufferPointer { append(contentsOf: UnsafeBufferPointer(rebasing: $0[start..<(start + count)])) }
  }

  /// Appends all of `bytes`.
  package mutating func append(_ bytes: Span<UInt8>) {
    bytes.withUnsafeBufferPointer { append(contentsOf: $0) }
  }
}
