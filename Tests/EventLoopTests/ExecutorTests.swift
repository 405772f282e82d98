import EventLoop
import Glibc
import Primitives
import Synchronization
import Testing

struct ExecutorTests {
  @Test("EventLoop a task that prefers a loop stays on its thread across awaits")
  func taskStaysOnLoop() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let pool = BlockingPool(name: "test", threads: 1, queueMax: 1)
    let places = await Task(executorPreference: loop) {
      var places = [loop.isCurrent]
      await Task.yield()
      places.append(loop.isCurrent)
      _ = try? await pool.run { 1 }
      places.append(loop.isCurrent)
      places.append(await nested(loop))
      places.append(EventLoop.current === loop)
      return places
    }.value
    #expect(places == [true, true, true, true, true])
    #expect(!loop.isCurrent)
    await group.shutdown()
  }

  private func nested(_ loop: EventLoop) async -> Bool {
    await Task.yield()
    return loop.isCurrent
  }

  @Test("EventLoop withTaskExecutorPreference moves a task to the loop and back")
  func preferenceIsScoped() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let inside = await withTaskExecutorPreference(loop) {
      await Task.yield()
      return loop.isCurrent
    }
    await Task.yield()
    #expect(inside)
    #expect(!loop.isCurrent)
    await group.shutdown()
  }

  private actor Pinned {
    let loop: EventLoop
    var count = 0

    init(_ loop: EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func add() -> Bool {
      count += 1
      assertIsolated()
      return loop.isCurrent
    }
  }

  @Test("EventLoop an actor may have a loop as its serial executor")
  func actorOnLoop() async {
    let group = EventLoopGroup(count: 1)
    let actor = Pinned(group.loops[0])
    #expect(await actor.add())
    #expect(await Task(executorPreference: group.loops[0]) { await actor.add() }.value)
    #expect(await actor.count == 2)
    await group.shutdown()
  }

  @Test("EventLoop work from many threads is all run, on the loop")
  func executeFromThreads() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let (all, end) = AsyncStream.makeStream(of: Bool.self)
    let pool = BlockingPool(name: "test", threads: 4, queueMax: 4)
    await withTaskGroup(of: Void.self) { tasks in
      for _ in 0..<4 {
        tasks.addTask {
          try? await pool.run {
            for _ in 0..<5000 { loop.execute { end.yield(loop.isCurrent) } }
          }
        }
      }
    }
    loop.execute { end.finish() }
    var count = 0
    for await isOnLoop in all {
      #expect(isOnLoop)
      count += 1
    }
    #expect(count == 20_000)
    await group.shutdown()
  }

  @Test("EventLoop afterTurn work runs once, after the turn's jobs, and may ask for more of the same turn")
  func afterTurnOrder() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let order = await withCheckedContinuation { (continuation: CheckedContinuation<[String], Never>) in
      loop.execute {
        let log = Box<[String]>([])
        loop.afterTurn {
          log.value.append("end")
          loop.afterTurn { log.value.append("end of the end") }
          loop.executeHere {
            log.value.append("next turn")
            continuation.resume(returning: log.value)
          }
        }
        loop.executeHere { log.value.append("job") }
        log.value.append("first")
      }
    }
    #expect(order == ["first", "job", "end", "end of the end", "next turn"])
    await group.shutdown()
  }

  @Test("EventLoop a queue that refills itself does not starve descriptors and timers")
  func refillingQueue() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let isDone = Atomic<Bool>(false)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      loop.execute {
        @Sendable func again() {
          if !isDone.load(ordering: .relaxed) { loop.execute { again() } }
        }
        again()
        loop.schedule(after: .milliseconds(1)) {
          isDone.store(true, ordering: .relaxed)
          continuation.resume()
        }
      }
    }
    await group.shutdown()
  }

  @Test("EventLoop events of a descriptor that was deregistered in the same turn are not delivered")
  func deregisteredInTurn() async {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let calls = await withCheckedContinuation { (continuation: CheckedContinuation<Int, Never>) in
      loop.execute {
        let pair = Pair(loop)
        pair.start()
        loop.schedule(after: .milliseconds(5)) { continuation.resume(returning: pair.calls) }
      }
    }
    #expect(calls == 1)
    await group.shutdown()
  }

  /// Two pipes that are readable at once; whichever is served first closes both and reuses the numbers.
  private final class Pair: EventHandler {
    let loop: EventLoop
    var ends: [Int32] = []
    var calls = 0

    init(_ loop: EventLoop) { self.loop = loop }

    func start() {
      ends = makePipe() + makePipe()
      for index in [0, 2] {
        write(ends[index + 1], "x", 1)
        loop.register(ends[index], .readable, handler: self)
      }
    }

    func makePipe() -> [Int32] {
      var pair: [Int32] = [0, 0]
      pipe(&pair)
      return pair
    }

    func ready(_ events: Interest) {
      calls += 1
      guard calls == 1 else { return }
      loop.deregister(ends[0])
      loop.deregister(ends[2])
      for end in ends { close(end) }
      ends = makePipe() + makePipe()
      loop.register(ends[0], .readable, handler: self)
      loop.register(ends[2], .readable, handler: self)
    }
  }

  @Test("EventLoop a group ends its threads after what was queued, and a task that is left still ends")
  func shutdownRunsQueue() async {
    let group = EventLoopGroup(count: 2)
    let count = Atomic<Int>(0)
    for loop in group.loops {
      for _ in 0..<100 { loop.execute { count.wrappingAdd(1, ordering: .relaxed) } }
    }
    await group.shutdown()
    #expect(count.load(ordering: .relaxed) == 200)
    #expect(await Task(executorPreference: group.loops[0]) { 7 }.value == 7)
  }

  @Test("EventLoop any is the current loop when it is one of the group's, else round robin")
  func anyLoop() async {
    let group = EventLoopGroup(count: 2)
    #expect(group.any !== group.any)
    for loop in group.loops {
      #expect(await Task(executorPreference: loop) { group.any === loop && group.any === loop }.value)
    }
    await group.shutdown()
  }
}

final class Box<Value> {
  var value: Value
  init(_ value: Value) { self.value = value }
}
