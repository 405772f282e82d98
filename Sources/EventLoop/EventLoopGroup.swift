private import Synchronization

/// The loops of a process, one per core it may use.
package final class EventLoopGroup: Sendable {
  package let loops: [EventLoop]
  private let counter = Atomic<Int>(0)

  package init(count: Int, name: String = "loop") {
    precondition(count > 0)
    loops = (0..<count).map { EventLoop(name: "\(name)-\($0)") }
  }

  /// Round robin.
  package func next() -> EventLoop {
    let ticket = counter.wrappingAdd(1, ordering: .relaxed).oldValue
    return loops[Int(UInt(bitPattern: ticket) % UInt(loops.count))]
  }

  /// The current loop when it belongs to the group, else `next()`.
  package var any: EventLoop {
    if let current = EventLoop.current, loops.contains(where: { $0 === current }) { return current }
    return next()
  }

  /// Closes what is registered, runs what is queued, drops timers that are not due and ends the threads.
  package func shutdown() async {
    for loop in loops {
      await withCheckedContinuation { continuation in
        loop.end { continuation.resume() }
      }
    }
  }
}
