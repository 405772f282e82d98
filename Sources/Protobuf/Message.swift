/// A generated protobuf message: a plain value with a wire form.
@usableFromInline package protocol Message: Sendable, Equatable {
  /// All fields at their defaults.
  init()

  /// The proto name, such as `afterthoughts.vault.v1.Letter`.
  static var fullName: String { get }

  /// Decodes one whole message.
  ///
  /// Refuses what `DecodingError.Rule` lists. Allocates at most 8 x the size plus 64 KiB while unpacking.
  init(serialized bytes: UnsafeRawBufferPointer) throws(DecodingError)

  /// The number of bytes that `write(to:)` appends.
  var serializedSize: Int { get }

  /// Appends the wire form: fields in the order of their numbers, maps by key, unknown fields last.
  func write(to writer: inout WireWriter)
}

extension Message {
  /// Decodes one whole message from an array.
  package init(serialized bytes: [UInt8]) throws(DecodingError) {
    self = try bytes.span.withUnsafeBytes { (buffer) throws(DecodingError) -> Self in try Self(serialized: buffer) }
  }

  /// Writes the wire form to `buffer`, which must hold exactly `serializedSize` bytes.
  package func serialize(into buffer: UnsafeMutableRawBufferPointer) {
    guard let base = buffer.baseAddress else { return }
    // Safety: `write` appends exactly `serializedSize` bytes of the same immutable value; checked below.
    var writer = WireWriter(at: base)
    write(to: &writer)
    precondition(writer.cursor == base + buffer.count, "the size and the content of a message disagree")
  }

  /// The wire form, after `prefix` zero bytes for the caller to fill in (a frame header).
  package func serialized(reserving prefix: Int = 0) -> [UInt8] {
    let size = serializedSize
    return [UInt8](unsafeUninitializedCapacity: prefix + size) { buffer, count in
      guard let base = UnsafeMutableRawPointer(buffer.baseAddress) else { return }
      base.initializeMemory(as: UInt8.self, repeating: 0, count: prefix)
      // Safety: `write` appends exactly `serializedSize` bytes of the same immutable value; checked below.
      var writer = WireWriter(at: base + prefix)
      write(to: &writer)
      precondition(writer.cursor == base + prefix + size, "the size and the content of a message disagree")
      count = prefix + size
    }
  }
}
