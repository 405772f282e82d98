package import Primitives

/// One piece of work that a loop runs later; made by `EventLoop.schedule`.
///
/// Safety: `@unchecked Sendable` so that a reference may travel; all but `deadline` is loop thread only.
package final class LoopTimer: @unchecked Sendable {
  package let deadline: Monotonic
  fileprivate var work: (() -> Void)?
  private unowned let heap: TimerHeap

  fileprivate init(deadline: Monotonic, heap: TimerHeap, work: @escaping () -> Void) {
    self.deadline = deadline
    self.heap = heap
    self.work = work
  }

  /// True until it has run or was cancelled.
  package var isPending: Bool { work != nil }

  /// Loop thread only. Harmless after it has run.
  package func cancel() {
    guard work != nil else { return }
    work = nil
    heap.noteCancelled()
  }
}

/// A binary heap by deadline. Cancelled entries stay until they are due or until they outnumber the live ones.
final class TimerHeap {
  private struct Entry {
    let deadline: Int64
    let timer: LoopTimer
  }

  private var entries: ContiguousArray<Entry> = []
  private var cancelledCount = 0

  /// Entries held, cancelled ones included.
  var count: Int { entries.count }

  /// The deadline of the next live timer.
  var next: Int64? {
    while let first = entries.first {
      if first.timer.work != nil { return first.deadline }
      removeFirst()
      cancelledCount -= 1
    }
    return nil
  }

  func schedule(at deadline: Monotonic, _ work: @escaping () -> Void) -> LoopTimer {
    let timer = LoopTimer(deadline: deadline, heap: self, work: work)
    entries.append(Entry(deadline: deadline.nanoseconds, timer: timer))
    siftUp(entries.count - 1)
    return timer
  }

  /// Runs what is due at `now`, in order of deadline.
  func runDue(_ now: Int64) {
    while let deadline = next, deadline <= now {
      let timer = entries[0].timer
      removeFirst()
      let work = timer.work
      timer.work = nil
      work?()
    }
  }

  /// Forgets everything without running it.
  func removeAll() {
    for entry in entries { entry.timer.work = nil }
    entries = []
    cancelledCount = 0
  }

  fileprivate func noteCancelled() {
    cancelledCount += 1
    if cancelledCount > 64, cancelledCount * 2 > entries.count { compact() }
  }

  private func compact() {
    entries.removeAll { $0.timer.work == nil }
    cancelledCount = 0
    for index in stride(from: entries.count / 2 - 1, through: 0, by: -1) { siftDown(index) }
  }

  private func removeFirst() {
    let last = entries.removeLast()
    guard !entries.isEmpty else { return }
    entries[0] = last
    siftDown(0)
  }

  private func siftUp(_ start: Int) {
    var child = start
    entries.withUnsafeMutableBufferPointer { entries in
      while child > 0 {
        let parent = (child - 1) / 2
        guard entries[child].deadline < entries[parent].deadline else { return }
        entries.swapAt(child, parent)
        child = parent
      }
    }
  }

  private func siftDown(_ start: Int) {
    var parent = start
    entries.withUnsafeMutableBufferPointer { entries in
      while true {
        var child = parent * 2 + 1
        guard child < entries.count else { return }
        if child + 1 < entries.count, entries[child + 1].deadline < entries[child].deadline { child += 1 }
        guard entries[child].deadline < entries[parent].deadline else { return }
        entries.swapAt(child, parent)
        parent = child
      }
    }
  }
}
