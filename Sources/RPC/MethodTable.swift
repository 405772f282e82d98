internal import HTTP2

/// What a server serves, found by the bytes of a path: open addressing, built once, no text is made on the way.
struct MethodTable: Sendable {
  final class Entry: Sendable {
    let handler: MethodHandler
    let path: [UInt8]

    init(_ handler: MethodHandler) {
      self.handler = handler
      path = Array(handler.method.path.utf8)
    }
  }

  private var slots: [Entry?]
  private let mask: Int
  private(set) var services: Set<String> = []

  /// Two handlers of one path are a bug of ours.
  init(_ services: [any Service]) {
    let handlers = services.flatMap { $0.handlers }
    var size = 16
    while size < handlers.count * 4 { size *= 2 }
    slots = Array(repeating: nil, count: size)
    mask = size - 1
    for service in services { self.services.insert(type(of: service).descriptor.name) }
    for handler in handlers {
      let entry = Entry(handler)
      let path = entry.path
      var index = Self.hash(path.span) & mask
      while let other = slots[index] {
        precondition(other.path != path, "the method \(handler.method.path) is served twice")
        index = (index + 1) & mask
      }
      slots[index] = entry
    }
  }

  func find(_ path: Span<UInt8>) -> Entry? {
    var index = Self.hash(path) & mask
    while let entry = slots[index] {
      if path.equals(entry.path) { return entry }
      index = (index + 1) & mask
    }
    return nil
  }

  /// Paths differ at their ends: the length and the last 12 bytes are enough, and the paths are ours, not a peer's.
  private static func hash(_ path: Span<UInt8>) -> Int {
    var value = UInt64(truncatingIfNeeded: path.count)
    var index = max(0, path.count - 12)
    while index < path.count {
      value = (value ^ UInt64(path[index])) &* 0x0000_0100_0000_01B3
      index += 1
    }
    return Int(truncatingIfNeeded: (value ^ value >> 29) & 0x7FFF_FFFF)
  }
}
