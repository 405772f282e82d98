internal import CLinux

/// Who owns each descriptor that one epoll descriptor watches. The system reuses numbers, even within one batch of
/// events, so every registration has a generation that its events carry.
struct DescriptorTable {
  private struct Entry {
    var handler: (any EventHandler)?
    var generation: UInt32 = 0
  }

  private let epoll: Int32
  private var entries: ContiguousArray<Entry> = []

  init(epoll: Int32) {
    self.epoll = epoll
  }

  mutating func add(_ descriptor: Int32, _ interest: Interest, _ handler: any EventHandler) {
    let index = Int(descriptor)
    while entries.count <= index { entries.append(Entry()) }
    entries[index].generation &+= 1
    entries[index].handler = handler
    control(EPOLL_CTL_ADD, descriptor, interest)
  }

  func change(_ descriptor: Int32, _ interest: Interest) {
    control(EPOLL_CTL_MOD, descriptor, interest)
  }

  mutating func remove(_ descriptor: Int32) {
    let index = Int(descriptor)
    guard index < entries.count, entries[index].handler != nil else { return }
    entries[index].generation &+= 1
    entries[index].handler = nil
    _ = linux_epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, 0, 0)
  }

  mutating func removeAll() {
    entries = []
  }

  var handlers: [any EventHandler] { entries.compactMap(\.handler) }

  /// The owner of the registration that an event was fetched for; nil when it has been removed since.
  @inline(__always)
  func handler(_ data: UInt64) -> (any EventHandler)? {
    let index = Int(data & 0xffff_ffff)
    guard index < entries.count, entries[index].generation == UInt32(data >> 32) else { return nil }
    return entries[index].handler
  }

  @inline(__always)
  static func interest(_ events: UInt32) -> Interest {
    if events & (linux_epoll_err | linux_epoll_hup) != 0 { return [.readable, .writable] }
    var interest: Interest = []
    if events & linux_epoll_in != 0 { interest.insert(.readable) }
    if events & linux_epoll_out != 0 { interest.insert(.writable) }
    return interest
  }

  private func control(_ operation: Int32, _ descriptor: Int32, _ interest: Interest) {
    var events: UInt32 = 0
    if interest.contains(.readable) { events |= linux_epoll_in }
    if interest.contains(.writable) { events |= linux_epoll_out }
    let data = UInt64(entries[Int(descriptor)].generation) << 32 | UInt64(UInt32(descriptor))
    _ = linux_epoll_ctl(epoll, operation, descriptor, events, data)
  }
}
