internal import EventLoop
internal import Primitives
internal import Synchronization

/// A doorbell: `ring` wakes everyone who waits, and a ring that came since `count` was read is never missed.
package final class Signal: Sendable {
  private struct State {
    var count: UInt64 = 0
    var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var nextID: UInt64 = 0
  }

  private let state = Mutex(State())

  package init() {}

  /// How often it has rung.
  package var count: UInt64 { state.withLock { $0.count } }

  package func ring() {
    let waiting = state.withLock { state in
      state.count += 1
      defer { state.waiting.removeAll() }
      return state.waiting.values.map { $0 }
    }
    for continuation in waiting { continuation.resume() }
  }

  /// How many wait at present.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Returns once it has rung more often than `count`, after `timeout`, or when the task is cancelled. The timeout
  /// needs an event loop: elsewhere there is none.
  package func wait(after count: UInt64, timeout: Duration) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let loop = EventLoop.current
    let timer = loop?.schedule(after: timeout) { [weak self] in self?.finish(id) }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready = state.withLock { state in
          if state.count > count || Task.isCancelled { return true }
          state.waiting[id] = continuation
          return false
        }
        if ready { continuation.resume() }
      }
    } onCancel: {
      finish(id)
    }
    // Rung or cancelled long before its time, a timer must not lie about until then.
    if let loop, let timer { loop.isCurrent ? timer.cancel() : loop.execute { timer.cancel() } }
  }

  private func finish(_ id: UInt64) {
    state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
  }
}

/// Waits without holding a thread; ends early when the task is cancelled. Must run on an event loop.
package func pause(_ duration: Duration) async {
  let signal = Signal()
  await signal.wait(after: 0, timeout: duration)
}

/// Growing waits after failures: doubling from `first` to `longest`, each shortened by up to a fifth at random.
package struct Backoff: Sendable {
  package let first: Duration
  package let longest: Duration
  private var failures = 0

  package init(first: Duration = .milliseconds(100), longest: Duration = .seconds(5)) {
    self.first = first
    self.longest = longest
  }

  package mutating func next() -> Duration {
    let factor = 1 << min(failures, 20)
    failures += 1
    let full = min(Double(first.microseconds) * Double(factor), Double(longest.microseconds))
    return .microseconds(Int64(full * Double.random(in: 0.8...1)))
  }

  package mutating func reset() { failures = 0 }
}
