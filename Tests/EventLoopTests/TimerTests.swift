import EventLoop
import Primitives
import Testing

struct TimerTests {
  @Test("EventLoop timers run in order of deadline, not before it, and a cancelled one never")
  func order() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let start = Monotonic.now()
    let (order, atEnd) = await withCheckedContinuation {
      (continuation: CheckedContinuation<([Int], Monotonic), Never>) in
      loop.execute {
        let log = Box<[Int]>([])
        for delay in [3, 1, 2, 0] {
          loop.schedule(after: .milliseconds(delay)) { log.value.append(delay) }
        }
        let cancelled = loop.schedule(after: .milliseconds(1)) { log.value.append(99) }
        cancelled.cancel()
        cancelled.cancel()
        loop.schedule(after: .milliseconds(4)) { continuation.resume(returning: (log.value, Monotonic.now())) }
      }
    }
    #expect(order == [0, 1, 2, 3])
    #expect(start.advanced(by: .milliseconds(4)) <= atEnd)
    await group.shutdown()
  }

  @Test("EventLoop cancelled timers do not pile up")
  func cancelledAreRemoved() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let (held, pending) = await Task(executorPreference: loop) {
      let kept = (0..<10).map { loop.schedule(after: .seconds(3600 + $0)) {} }
      for second in 0..<10_000 { loop.schedule(after: .seconds(60 + second)) {}.cancel() }
      return (loop.timerCount, kept.filter(\.isPending).count)
    }.value
    #expect(held < 200)
    #expect(pending == 10)
    await group.shutdown()
  }
}
