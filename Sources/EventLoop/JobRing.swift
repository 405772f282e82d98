/// A growable first-in first-out ring of jobs for one thread.
///
/// Safety: the storage is owned by this value alone; the loop that holds it is the only user and calls `free` once.
struct JobRing {
  private var storage: UnsafeMutablePointer<UnownedJob>
  private var capacity: Int
  private var head = 0
  private(set) var count = 0

  init(capacity: Int = 256) {
    precondition(capacity > 0 && capacity & (capacity - 1) == 0)
    self.capacity = capacity
    storage = .allocate(capacity: capacity)
  }

  @inline(__always)
  mutating func append(_ job: UnownedJob) {
    if count == capacity { grow() }
    (storage + ((head &+ count) & (capacity &- 1))).initialize(to: job)
    count &+= 1
  }

  @inline(__always)
  mutating func popFirst() -> UnownedJob? {
    guard count > 0 else { return nil }
    let job = (storage + head).move()
    head = (head &+ 1) & (capacity &- 1)
    count &-= 1
    return job
  }

  private mutating func grow() {
    let bigger = UnsafeMutablePointer<UnownedJob>.allocate(capacity: capacity * 2)
    let tail = capacity - head
    bigger.moveInitialize(from: storage + head, count: tail)
    (bigger + tail).moveInitialize(from: storage, count: head)
    storage.deallocate()
    storage = bigger
    capacity *= 2
    head = 0
  }

  func free() {
    storage.deallocate()
  }
}
