internal import CLinux
internal import Glibc
package import Primitives
private import Synchronization

/// One thread around one epoll descriptor, which is also a Swift executor.
///
/// A turn is: wait, handlers of ready descriptors, due timers, jobs until there are none (or the turn's share is used
/// up), work asked for by `afterTurn`, then streams flush what was written. Jobs keep their order among themselves,
/// and so do closures given to `execute`; there is no order between the two kinds.
///
/// Safety: `@unchecked Sendable` because everything marked "loop thread only" is touched by the loop's own thread
/// alone (checked by `assertCurrent` in debug builds); what other threads touch is atomic or behind the mutex.
package final class EventLoop: TaskExecutor, SerialExecutor, @unchecked Sendable {
  /// Jobs and closures of one turn before descriptors are looked at again.
  private static let workPerTurnMax = 2048
  private static let eventsPerTurnMax = 256
  private static let turnEndRoundsMax = 64
  private static let receiveBufferBytes = 256 * 1024

  private struct RemoteWork {
    var jobs: ContiguousArray<UnownedJob> = []
    var closures: ContiguousArray<@Sendable () -> Void> = []
    var isEnded = false
    var isRunningLate = false
  }

  /// Stands for the wake-up descriptor; no registration has it.
  private static let wakeUpData = UInt64.max

  package let name: String
  private let epoll: Int32
  private let wakeUp: Int32
  private let thread = Atomic<UInt>(0)
  private let remote = Mutex(RemoteWork())
  private let remotePending = Atomic<Bool>(false)
  private let asleep = Atomic<Bool>(false)
  private let isEnded = Atomic<Bool>(false)

  // Loop thread only, from here on.
  private var jobs = JobRing()
  private var closures: ContiguousArray<() -> Void> = []
  private var spareClosures: ContiguousArray<() -> Void> = []
  private var remoteJobs: ContiguousArray<UnownedJob> = []
  private var remoteClosures: ContiguousArray<@Sendable () -> Void> = []
  private var turnEndClosures: ContiguousArray<() -> Void> = []
  private var turnEndHandlers: ContiguousArray<any TurnEndHandler> = []
  private var spareTurnEndClosures: ContiguousArray<() -> Void> = []
  private var spareTurnEndHandlers: ContiguousArray<any TurnEndHandler> = []
  private var flushes: ContiguousArray<ByteStream> = []
  private var spareFlushes: ContiguousArray<ByteStream> = []
  private var descriptors: DescriptorTable
  private let timers = TimerHeap()
  private var isEnding = false
  private var onEnd: (() -> Void)?
  /// Where every stream of this loop receives into; its content is valid only during one `received` call.
  let receiveBuffer: UnsafeMutableRawBufferPointer
  let outputStorage = OutputStorage()

  package init(name: String = "loop") {
    linux_ignore_broken_pipe()
    self.name = name
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    precondition(epoll >= 0 && wakeUp >= 0, "no descriptors are left for an event loop")
    descriptors = DescriptorTable(epoll: epoll)
    receiveBuffer = .allocate(byteCount: Self.receiveBufferBytes, alignment: 64)
    // Edge-triggered, so that a wake-up needs no read.
    _ = linux_epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, linux_epoll_in | linux_epoll_et, Self.wakeUpData)
    Thread.start(name: name) { self.run() }
  }

  deinit {
    jobs.free()
    receiveBuffer.deallocate()
    close(epoll)
    close(wakeUp)
  }

  // MARK: Which thread

  private static let currentKey: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
  }()

  /// The loop whose thread this is.
  package static var current: EventLoop? {
    // Safety: the value was stored by `run`, whose frame keeps the loop alive while its thread lives.
    pthread_getspecific(currentKey).map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
  }

  /// True on the loop's own thread.
  package var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

  @inline(__always)
  package func assertCurrent() {
    assert(isCurrent || isEnded.load(ordering: .relaxed), "called from outside the loop \(name)")
  }

  package func checkIsolated() {
    precondition(isCurrent, "expected to run on the loop \(name)")
  }

  package func isIsolatingCurrentContext() -> Bool? { isCurrent }

  // MARK: Work

  /// Any thread. The order of jobs is kept.
  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if isCurrent {
      jobs.append(job)
      return
    }
    let isEnded = remote.withLock { work in
      if !work.isEnded { work.jobs.append(job) }
      return work.isEnded
    }
    if isEnded {
      // A task that outlives its loop still gets to its end.
      globalConcurrentExecutor.enqueue(job)
    } else {
      wake()
    }
  }

  /// Any thread. Runs `work` on the loop, soon but never inside this call. After the loop has ended it runs on the
  /// calling thread, one piece at a time, so that nobody waits for it in vain.
  package func execute(_ work: @escaping @Sendable () -> Void) {
    if isCurrent {
      closures.append(work)
      return
    }
    let isEnded = remote.withLock { remote in
      remote.closures.append(work)
      return remote.isEnded
    }
    if isEnded { runLateWork() } else { wake() }
  }

  private func runLateWork() {
    var mayRun = remote.withLock { remote in
      defer { remote.isRunningLate = true }
      return !remote.isRunningLate
    }
    while mayRun {
      let work = remote.withLock { remote in
        if remote.closures.isEmpty { remote.isRunningLate = false }
        return remote.closures.isEmpty ? nil : remote.closures.removeFirst()
      }
      work?()
      mayRun = work != nil
    }
  }

  /// Loop thread only: `execute` for work that cannot be sent to another thread.
  package func executeHere(_ work: @escaping () -> Void) {
    assertCurrent()
    if isEnded.load(ordering: .relaxed) { return work() }
    closures.append(work)
  }

  private func wake() {
    remotePending.store(true, ordering: .sequentiallyConsistent)
    // Only the first of a batch finds the loop asleep and pays for the write.
    if asleep.exchange(false, ordering: .sequentiallyConsistent) {
      eventfd_write(wakeUp, 1)
    }
  }

  /// Loop thread only. Runs `work` once, not before `delay` has passed.
  @discardableResult
  package func schedule(after delay: Duration, _ work: @escaping () -> Void) -> LoopTimer {
    schedule(at: Monotonic.now().advanced(by: delay), work)
  }

  /// Loop thread only. Runs `work` once, not before `deadline`.
  @discardableResult
  package func schedule(at deadline: Monotonic, _ work: @escaping () -> Void) -> LoopTimer {
    assertCurrent()
    return timers.schedule(at: deadline, work)
  }

  /// Loop thread only. Runs once at the end of the present turn, before streams flush and before the next wait. Asked
  /// for from within such work, it runs in the same turn.
  package func afterTurn(_ work: @escaping () -> Void) {
    assertCurrent()
    turnEndClosures.append(work)
  }

  /// Loop thread only: `afterTurn` without allocation.
  package func afterTurn(notify handler: any TurnEndHandler) {
    assertCurrent()
    turnEndHandlers.append(handler)
  }

  func flushAfterTurn(_ stream: ByteStream) {
    flushes.append(stream)
  }

  /// Timers held, cancelled ones that are not yet removed included; for tests.
  package var timerCount: Int { timers.count }

  // MARK: Descriptors

  /// Loop thread only. Level-triggered; the loop keeps `handler` until `deregister`, and does not close `descriptor`.
  package func register(_ descriptor: Int32, _ interest: Interest, handler: any EventHandler) {
    assertCurrent()
    descriptors.add(descriptor, interest, handler)
  }

  /// Loop thread only. Changes what a registered descriptor is watched for.
  package func modify(_ descriptor: Int32, _ interest: Interest) {
    assertCurrent()
    descriptors.change(descriptor, interest)
  }

  /// Loop thread only; call it before the descriptor is closed. Events already fetched are not delivered any more.
  package func deregister(_ descriptor: Int32) {
    assertCurrent()
    descriptors.remove(descriptor)
  }

  // MARK: The turn

  private func run() {
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    pthread_setspecific(Self.currentKey, Unmanaged.passUnretained(self).toOpaque())
    // Safety: allocated and freed here, used by this thread alone.
    let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: Self.eventsPerTurnMax)
    defer { events.deallocate() }
    while true {
      let count = wait(events)
      for index in 0..<count { dispatch(events + index) }
      if remotePending.load(ordering: .acquiring) { takeRemoteWork() }
      if timers.count > 0 { timers.runDue(Monotonic.now().nanoseconds) }
      runWork()
      endTurn()
      if isEnding, end() { return }
    }
  }

  private func wait(_ events: UnsafeMutablePointer<epoll_event>) -> Int {
    var timeout = isEnding ? 0 : waitMilliseconds()
    if timeout != 0 {
      asleep.store(true, ordering: .sequentiallyConsistent)
      if remotePending.load(ordering: .sequentiallyConsistent) { timeout = 0 }
    }
    let count = epoll_wait(epoll, events, Int32(Self.eventsPerTurnMax), timeout)
    asleep.store(false, ordering: .relaxed)
    return count > 0 ? Int(count) : 0
  }

  private func waitMilliseconds() -> Int32 {
    if jobs.count > 0 || !closures.isEmpty || !turnEndClosures.isEmpty || !turnEndHandlers.isEmpty
      || !flushes.isEmpty
    {
      return 0
    }
    guard let next = timers.next else { return -1 }
    let remaining = next - Monotonic.now().nanoseconds
    if remaining <= 0 { return 0 }
    return Int32(min((remaining + 999_999) / 1_000_000, 60_000))
  }

  @inline(__always)
  private func dispatch(_ event: UnsafeMutablePointer<epoll_event>) {
    let data = linux_epoll_data(event)
    if data == Self.wakeUpData { return }
    // Looked up first: the handler may change the table.
    guard let handler = descriptors.handler(data) else { return }
    handler.ready(DescriptorTable.interest(linux_epoll_events(event)))
  }

  private func takeRemoteWork() {
    remote.withLock { work in
      remotePending.store(false, ordering: .relaxed)
      swap(&work.jobs, &remoteJobs)
      swap(&work.closures, &remoteClosures)
    }
    for job in remoteJobs { jobs.append(job) }
    for closure in remoteClosures { closures.append(closure) }
    remoteJobs.removeAll(keepingCapacity: true)
    remoteClosures.removeAll(keepingCapacity: true)
  }

  private func runWork() {
    // A task executor's way to run a job: a loop that is also some actor's serial executor is recognised by
    // `isIsolatingCurrentContext`, and a non-isolated call inside the task costs no hop.
    let executor = asUnownedTaskExecutor()
    var left = Self.workPerTurnMax
    while left > 0 {
      if !closures.isEmpty {
        swap(&closures, &spareClosures)
        for closure in spareClosures { closure() }
        left -= spareClosures.count
        spareClosures.removeAll(keepingCapacity: true)
      }
      guard jobs.count > 0 else {
        if closures.isEmpty { return }
        continue
      }
      while left > 0, let job = jobs.popFirst() {
        job.runSynchronously(on: executor)
        left -= 1
      }
    }
  }

  private func endTurn() {
    var rounds = Self.turnEndRoundsMax
    while rounds > 0 {
      rounds -= 1
      if !turnEndHandlers.isEmpty || !turnEndClosures.isEmpty {
        swap(&turnEndHandlers, &spareTurnEndHandlers)
        swap(&turnEndClosures, &spareTurnEndClosures)
        for handler in spareTurnEndHandlers { handler.turnEnds() }
        for closure in spareTurnEndClosures { closure() }
        spareTurnEndHandlers.removeAll(keepingCapacity: true)
        spareTurnEndClosures.removeAll(keepingCapacity: true)
      } else if !flushes.isEmpty {
        swap(&flushes, &spareFlushes)
        for stream in spareFlushes { stream.flush() }
        spareFlushes.removeAll(keepingCapacity: true)
      } else {
        return
      }
    }
  }

  // MARK: The end

  /// Any thread. Tells every handler that the loop ends, runs what is left, and calls `completion` as its last act.
  func end(_ completion: @escaping @Sendable () -> Void) {
    execute {
      if self.isEnding { return completion() }
      self.isEnding = true
      self.onEnd = completion
      for handler in self.descriptors.handlers { handler.loopEnds() }
      self.timers.removeAll()
    }
  }

  /// True when nothing is left to run and the thread may go.
  private func end() -> Bool {
    if jobs.count > 0 || !closures.isEmpty || !turnEndClosures.isEmpty || !turnEndHandlers.isEmpty
      || !flushes.isEmpty
    {
      return false
    }
    let isIdle = remote.withLock { work in
      guard work.jobs.isEmpty, work.closures.isEmpty else { return false }
      work.isEnded = true
      return true
    }
    guard isIdle else { return false }
    descriptors.removeAll()
    isEnded.store(true, ordering: .relaxed)
    thread.store(0, ordering: .relaxed)
    pthread_setspecific(Self.currentKey, nil)
    onEnd?()
    onEnd = nil
    return true
  }
}
