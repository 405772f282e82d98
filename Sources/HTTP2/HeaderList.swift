internal import CNghttp2

/// A list of header fields to send, in one byte array. nghttp2 copies them.
package struct HeaderList: Sendable {
  private struct Field: Sendable {
    let nameLength: Int
    let valueLength: Int
    let isSensitive: Bool
  }

  private var bytes: [UInt8] = []
  private var fields: [Field] = []

  package init(capacity: Int = 256) {
    bytes.reserveCapacity(capacity)
    fields.reserveCapacity(12)
  }

  /// Adds a field. `name` is lower-case already; a sensitive value is kept out of the compression tables.
  package mutating func append(_ name: String, _ value: String, isSensitive: Bool = false) {
    bytes.append(contentsOf: name.utf8)
    bytes.append(contentsOf: value.utf8)
    fields.append(Field(nameLength: name.utf8.count, valueLength: value.utf8.count, isSensitive: isSensitive))
  }

  /// Safety: the pointers live for the length of `body`; nghttp2's submit functions copy what they point to.
  func withFields<R>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> R) -> R {
    bytes.withUnsafeBufferPointer { buffer in
      withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: fields.count) { output in
        // Safety: nghttp2's structure wants mutable pointers but never writes through them.
        var position = UnsafeMutablePointer(mutating: buffer.baseAddress)
        for (index, field) in fields.enumerated() {
          output.initializeElement(
            at: index,
            to: nghttp2_nv(
              name: position, value: position.map { $0 + field.nameLength }, namelen: field.nameLength,
              valuelen: field.valueLength,
              flags: UInt8(field.isSensitive ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : NGHTTP2_NV_FLAG_NONE.rawValue)))
          position = position.map { $0 + field.nameLength + field.valueLength }
        }
        return body(UnsafePointer(output.baseAddress), fields.count)
      }
    }
  }
}

/// Header fields made once for the life of the process and sent without a copy; keep one in a `static let`.
package final class PreparedHeaders: @unchecked Sendable {
  // Safety: written in `init` only, never freed, read by any thread afterwards.
  let fields: UnsafeMutableBufferPointer<nghttp2_nv>

  package init(_ pairs: KeyValuePairs<StaticString, StaticString>) {
    fields = .allocate(capacity: pairs.count)
    let flags = UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)
    for (index, (name, value)) in pairs.enumerated() {
      fields.initializeElement(
        at: index,
        to: nghttp2_nv(
          name: UnsafeMutablePointer(mutating: name.utf8Start), value: UnsafeMutablePointer(mutating: value.utf8Start),
          namelen: name.utf8CodeUnitCount, valuelen: value.utf8CodeUnitCount, flags: flags))
    }
  }
}
