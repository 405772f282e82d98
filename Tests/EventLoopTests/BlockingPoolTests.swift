import EventLoop
import Primitives
import Testing

struct BlockingPoolTests {
  @Test("EventLoop a full pool refuses with RESOURCE_EXHAUSTED, and has room again afterwards")
  func fullPool() async throws {
    let pool = BlockingPool(name: "test", threads: 2, queueMax: 1)
    let holder = Gate()
    await withTaskGroup(of: Void.self) { tasks in
      for _ in 0..<3 {
        tasks.addTask {
          await #expect(throws: Never.self) { try await pool.run { holder.wait() } }
        }
      }
      while pool.acceptedCount < 3 { await Task.yield() }
      let error = await #expect(throws: ServiceError.self) { try await pool.run {} }
      #expect(error?.code == .resourceExhausted)
      #expect(error?.reason == "POOL_BUSY")
      #expect(error?.retryAfter == .seconds(1))
      holder.open()
    }
    #expect(try await pool.run { 5 } == 5)
  }

  @Test("EventLoop work on the pool leaves the loop free, and its error comes back")
  func loopStaysFree() async throws {
    let group = EventLoopGroup(count: 1)
    let loop = group.loops[0]
    let pool = BlockingPool(name: "test", threads: 1, queueMax: 1)
    let gate = Gate()
    let work = Task(executorPreference: loop) {
      try await pool.run {
        gate.wait()
        throw ServiceError.notFound("thing")
      }
    }
    // Only a free loop can run this, and only this lets the work end.
    await Task(executorPreference: loop) { gate.open() }.value
    let error = await #expect(throws: ServiceError.self) { try await work.value }
    #expect(error?.code == .notFound)
    await group.shutdown()
  }
}
