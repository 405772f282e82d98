/// Raw blocks that the output buffers of one loop take turns in, so that an idle stream holds none and a busy one
/// allocates none.
///
/// Safety: loop thread only, like everything that uses it; a block is in the list or in one buffer, never in both.
final class OutputStorage {
  static let blockBytes = 64 * 1024
  private static let blocksMax = 64
  private var blocks: ContiguousArray<UnsafeMutableRawPointer> = []

  deinit {
    for block in blocks { block.deallocate() }
  }

  func take() -> UnsafeMutableRawPointer {
    blocks.popLast() ?? .allocate(byteCount: Self.blockBytes, alignment: 64)
  }

  func giveBack(_ block: UnsafeMutableRawPointer) {
    if blocks.count < Self.blocksMax { blocks.append(block) } else { block.deallocate() }
  }
}

/// Bytes waiting to be sent: one growable raw block and the offset of what is already gone.
///
/// Safety: the block belongs to this value alone; its stream calls `free` before it lets go of it.
struct OutputBuffer {
  private var base: UnsafeMutableRawPointer?
  private var capacity = 0
  private var start = 0
  private var end = 0

  var count: Int { end &- start }

  /// What is to be sent next; valid until the next mutating call.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base.map { $0 + start }, count: count) }

  mutating func append(_ bytes: UnsafeRawBufferPointer, _ storage: OutputStorage) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    let target = reserve(bytes.count, storage)
    target.copyMemory(from: source, byteCount: bytes.count)
    end &+= bytes.count
  }

  private mutating func reserve(_ more: Int, _ storage: OutputStorage) -> UnsafeMutableRawPointer {
    if let base {
      if capacity - end >= more { return base + end }
      if start >= count, capacity - count >= more {
        base.copyMemory(from: base + start, byteCount: count)
        end -= start
        start = 0
        return base + end
      }
    } else if more <= OutputStorage.blockBytes {
      let block = storage.take()
      base = block
      capacity = OutputStorage.blockBytes
      return block
    }
    let bigger = max(capacity * 2, count + more, OutputStorage.blockBytes)
    let block = UnsafeMutableRawPointer.allocate(byteCount: bigger, alignment: 64)
    if let base { block.copyMemory(from: base + start, byteCount: count) }
    let kept = count
    free(storage)
    base = block
    capacity = bigger
    end = kept
    return block + kept
  }

  /// Drops `sent` bytes from the front; an empty buffer gives its block back.
  mutating func consume(_ sent: Int, _ storage: OutputStorage) {
    start &+= sent
    if start == end { free(storage) }
  }

  mutating func free(_ storage: OutputStorage) {
    if let base {
      if capacity == OutputStorage.blockBytes { storage.giveBack(base) } else { base.deallocate() }
    }
    base = nil
    capacity = 0
    start = 0
    end = 0
  }
}
