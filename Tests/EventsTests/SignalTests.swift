import EventLoop
import Events
import Testing

@Suite(.timeLimit(.minutes(1))) struct SignalTests {
  @Test("Events a ring between the look at the count and the wait is not missed")
  func notMissed() async {
    let signal = Signal()
    let seen = signal.count
    signal.ring()
    await signal.wait(after: seen, timeout: .seconds(3600))
    #expect(signal.count == seen + 1 && signal.waitingCount == 0)
  }

  @Test("Events a ring wakes everyone who waits, once")
  func wakesAll() async {
    let signal = Signal()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<10 { group.addTask { await signal.wait(after: 0, timeout: .seconds(3600)) } }
      while signal.waitingCount < 10 { await Task.yield() }
      signal.ring()
    }
    #expect(signal.waitingCount == 0)
  }

  @Test("Events a wait ends with its task, also when that was cancelled before")
  func cancelled() async {
    let signal = Signal()
    let task = Task { await signal.wait(after: 0, timeout: .seconds(3600)) }
    while signal.waitingCount == 0 { await Task.yield() }
    task.cancel()
    await task.value
    let gate = Signal()
    let late = Task {
      await gate.wait(after: 0, timeout: .seconds(3600))
      await signal.wait(after: 0, timeout: .seconds(3600))
    }
    late.cancel()
    await late.value
    #expect(signal.waitingCount == 0 && gate.waitingCount == 0)
  }

  @Test("Events a wait ends at its timeout without a ring")
  func timeout() async {
    let group = EventLoopGroup(count: 1)
    let signal = Signal()
    await withTaskExecutorPreference(group.next()) {
      await signal.wait(after: 0, timeout: .milliseconds(1))
      await pause(.microseconds(1))
    }
    #expect(signal.count == 0 && signal.waitingCount == 0)
    await group.shutdown()
  }

  @Test("Events a wait that was rung early leaves no timer behind")
  func timers() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.next()
    let left = await withTaskExecutorPreference(loop) {
      let signal = Signal()
      for _ in 0..<1000 {
        async let ringing: Void = ring(signal)
        await signal.wait(after: signal.count, timeout: .seconds(3600))
        await ringing
      }
      return loop.timerCount
    }
    #expect(left < 100)
    await group.shutdown()
  }

  private func ring(_ signal: Signal) async {
    while signal.waitingCount == 0 { await Task.yield() }
    signal.ring()
  }

  @Test("Events pauses after failures double up to the longest and begin anew after a success")
  func backoff() {
    var backoff = Backoff(first: .milliseconds(100), longest: .milliseconds(1000))
    for full in [100, 200, 400, 800, 1000, 1000] {
      #expect((Duration.milliseconds(full) * 0.8...(.milliseconds(full))).contains(backoff.next()))
    }
    for _ in 0..<100 { #expect(backoff.next() <= .milliseconds(1000)) }
    backoff.reset()
    #expect(backoff.next() <= .milliseconds(100))
  }
}
