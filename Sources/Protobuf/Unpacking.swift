package import CProtobufC
private import Glibc

/// Unpacks messages through libprotobuf-c into a block of memory that each thread keeps.
///
/// Generated initialisers call `begin`, copy the C struct into a Swift value, and call `end`, all without suspending.
@usableFromInline package enum Unpacking {
  /// What a message may take beyond eight times its size, so that lists of small messages fit.
  package static let budgetBase = 65_536

  /// Checks and unpacks one message. The result is valid until `end` or the next `begin` on this thread.
  package static func begin(
    _ bytes: UnsafeRawBufferPointer, as type: WireType
  ) throws(DecodingError) -> UnsafeRawPointer {
    try WireValidator.check(bytes, as: type)
    let arena = Arena.ofThread()
    arena.pointee.reset(budget: 8 * bytes.count + budgetBase)
    let data = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    var allocator = Arena.allocator(over: arena)
    if let message = protobuf_c_message_unpack(type.descriptor, &allocator, bytes.count, data) {
      return UnsafeRawPointer(message)
    }
    let rule: DecodingError.Rule = arena.pointee.isExhausted ? .budgetExceeded : .refused
    arena.pointee.reset(budget: 0)
    throw DecodingError(rule, message: String(cString: type.descriptor.pointee.name))
  }

  /// Gives back what the last message took beyond the thread's own block.
  package static func end() {
    Arena.ofThread().pointee.reset(budget: 0)
  }

  // MARK: copying

  package static func string(_ characters: UnsafePointer<CChar>?) -> String {
    guard let characters, characters.pointee != 0 else { return "" }
    return String(cString: characters)
  }

  package static func bytes(_ data: ProtobufCBinaryData) -> [UInt8] {
    data.len == 0 ? [] : [UInt8](UnsafeBufferPointer(start: data.data, count: data.len))
  }

  @inlinable
  package static func values<Value>(_ values: UnsafePointer<Value>?, _ count: Int) -> [Value] {
    count == 0 ? [] : [Value](UnsafeBufferPointer(start: values, count: count))
  }

  @inlinable
  package static func values<C, Value>(
    _ values: UnsafePointer<C>?, _ count: Int, _ convert: (C) -> Value
  ) -> [Value] {
    count == 0 ? [] : UnsafeBufferPointer(start: values, count: count).map(convert)
  }

  package static func strings(_ texts: UnsafePointer<UnsafeMutablePointer<CChar>?>?, _ count: Int) -> [String] {
    values(texts, count) { string($0) }
  }

  package static func byteArrays(_ data: UnsafePointer<ProtobufCBinaryData>?, _ count: Int) -> [[UInt8]] {
    values(data, count) { bytes($0) }
  }

  @inlinable
  package static func messages<C, Value>(
    _ messages: UnsafePointer<UnsafeMutablePointer<C>?>?, _ count: Int, _ convert: (UnsafePointer<C>) -> Value
  ) -> [Value] {
    guard count > 0 else { return [] }
    return UnsafeBufferPointer(start: messages, count: count).compactMap { message in
      message.map { convert(UnsafePointer($0)) }
    }
  }

  /// Of two entries with one key the last counts.
  @inlinable
  package static func map<C, Key: Hashable, Value>(
    _ entries: UnsafePointer<UnsafeMutablePointer<C>?>?, _ count: Int, _ convert: (UnsafePointer<C>) -> (Key, Value)
  ) -> [Key: Value] {
    guard count > 0 else { return [:] }
    return Dictionary(messages(entries, count, convert)) { _, last in last }
  }

  /// Fields of a newer version of the type, in wire form.
  package static func unknownFields(of message: ProtobufCMessage) -> [UInt8] {
    let count = Int(message.n_unknown_fields)
    guard count > 0, let fields = message.unknown_fields else { return [] }
    var bytes: [UInt8] = []
    for index in 0..<count {
      let field = fields[index]
      var tag = UInt64(field.tag) << 3 | UInt64(field.wire_type.rawValue)
      while tag >= 0x80 {
        bytes.append(UInt8(truncatingIfNeeded: tag) | 0x80)
        tag >>= 7
      }
      bytes.append(UInt8(tag))
      bytes.append(contentsOf: UnsafeBufferPointer(start: field.data, count: field.len))
    }
    return bytes
  }
}

/// A bump allocator with a budget. It frees nothing until it is reset.
private struct Arena {
  // Safety: an arena is reached only through its thread's key, and every chunk is freed by `reset` or `destroy`.
  private static let blockBytes = 65_536
  private static let chunkHeaderBytes = 16

  private(set) var isExhausted = false
  private var budget = 0
  private var cursor: UnsafeMutableRawPointer
  private var end: UnsafeMutableRawPointer
  private let block: UnsafeMutableRawPointer
  /// Further chunks, each beginning with the address of the one before.
  private var lastChunk: UnsafeMutableRawPointer?

  private init() {
    block = .allocate(byteCount: Arena.blockBytes, alignment: 16)
    cursor = block
    end = block + Arena.blockBytes
  }

  static func allocator(over arena: UnsafeMutablePointer<Arena>) -> ProtobufCAllocator {
    ProtobufCAllocator(
      alloc: { data, size in data?.assumingMemoryBound(to: Arena.self).pointee.allocate(size) },
      free: { _, _ in },
      allocator_data: UnsafeMutableRawPointer(arena))
  }

  mutating func reset(budget: Int) {
    while let chunk = lastChunk {
      lastChunk = chunk.load(as: UnsafeMutableRawPointer?.self)
      chunk.deallocate()
    }
    cursor = block
    end = block + Arena.blockBytes
    isExhausted = false
    self.budget = budget
  }

  private mutating func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
    guard size >= 0, size <= budget else {
      isExhausted = true
      return nil
    }
    let rounded = (size + 7) & ~7
    budget -= size
    if rounded > end - cursor { addChunk(rounded) }
    let result = cursor
    cursor += rounded
    return result
  }

  private mutating func addChunk(_ bytes: Int) {
    let size = Arena.chunkHeaderBytes + max(bytes, 4 * Arena.blockBytes)
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
    chunk.storeBytes(of: lastChunk, as: UnsafeMutableRawPointer?.self)
    lastChunk = chunk
    cursor = chunk + Arena.chunkHeaderBytes
    end = chunk + size
  }

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let status = pthread_key_create(&key) { pointer in
      pointer?.assumingMemoryBound(to: Arena.self).pointee.destroy()
      pointer?.deallocate()
    }
    precondition(status == 0, "no thread key left")
    return key
  }()

  static func ofThread() -> UnsafeMutablePointer<Arena> {
    if let known = pthread_getspecific(key) { return known.assumingMemoryBound(to: Arena.self) }
    let arena = UnsafeMutablePointer<Arena>.allocate(capacity: 1)
    arena.initialize(to: Arena())
    pthread_setspecific(key, arena)
    return arena
  }

  private mutating func destroy() {
    reset(budget: 0)
    block.deallocate()
  }
}
