internal import Primitives
internal import Protobuf
internal import ServiceKit

/// One page of a list of messages.
struct MessagePage<Entry: Message> {
  /// A page ends early rather than outgrow what a client accepts: its messages may name 1,200 recipients each.
  static var bytesMax: Int { 2 << 20 }

  let entries: [Entry]
  /// Empty at the end.
  let nextToken: String

  /// The first `size` of what was found, fewer when they are large.
  init(_ found: [StoredMessage], size: Int, _ scope: PageScope, _ entry: (StoredMessage) -> Entry) throws {
    var entries: [Entry] = []
    var byteCount = 0
    for message in found.prefix(size) {
      let next = entry(message)
      byteCount += next.serializedSize
      if !entries.isEmpty, byteCount > Self.bytesMax { break }
      entries.append(next)
    }
    self.entries = entries
    guard entries.count < found.count, let last = found.prefix(entries.count).last else {
      nextToken = ""
      return
    }
    nextToken = try scope.seal(TimeCursor(time: last.createTime, id: last.id))
  }
}
