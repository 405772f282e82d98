internal import CLinux
internal import Glibc
private import Primitives
private import Synchronization

/// Threads for work that blocks or burns CPU, which must never run on a loop. Both the threads and the queue in front
/// of them are bounded; threads start when first needed and end with the pool.
package final class BlockingPool: Sendable {
  private let state: State

  /// At most `threads` pieces of work run at once and at most `queueMax` wait.
  package init(name: String, threads: Int, queueMax: Int) {
    precondition(threads > 0 && queueMax >= 0)
    state = State(name: name, threadsMax: threads, queueMax: queueMax)
  }

  deinit {
    state.end()
  }

  /// Pieces of work that run or wait now.
  package var acceptedCount: Int { state.acceptedCount }

  /// Runs `work` on a thread of the pool. A full queue throws RESOURCE_EXHAUSTED, reason POOL_BUSY, at once.
  package func run<T: Sendable>(_ work: @escaping @Sendable () throws -> T) async throws -> T {
    try await withUnsafeThrowingContinuation { continuation in
      let isAccepted = state.submit {
        let result = Result(catching: work)
        return { continuation.resume(with: result) }
      }
      if !isAccepted {
        continuation.resume(
          throwing: ServiceError(
            .resourceExhausted, "The service is busy; try again in a moment.", reason: "POOL_BUSY",
            retryAfter: .seconds(1)))
      }
    }
  }

  /// Safety: `@unchecked Sendable` because every variable is touched under `mutex` only, and the two C objects live at
  /// a fixed address from `init` to `deinit`; each thread holds the state.
  private final class State: @unchecked Sendable {
    /// Does the work and returns what reports its result, which runs after the place has been given back.
    typealias Work = () -> () -> Void

    private let name: String
    private let threadsMax: Int
    private let queueMax: Int
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let available = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var queue: [Work] = []
    private var queueHead = 0
    private var threads = 0
    /// Accepted and not finished: running or waiting.
    private var accepted = 0
    private var isEnded = false

    init(name: String, threadsMax: Int, queueMax: Int) {
      self.name = name
      self.threadsMax = threadsMax
      self.queueMax = queueMax
      pthread_mutex_init(mutex, nil)
      pthread_cond_init(available, nil)
    }

    deinit {
      pthread_cond_destroy(available)
      pthread_mutex_destroy(mutex)
      available.deallocate()
      mutex.deallocate()
    }

    func submit(_ work: @escaping Work) -> Bool {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      guard !isEnded, accepted < threadsMax + queueMax else { return false }
      accepted += 1
      queue.append(work)
      if threads < threadsMax, accepted > threads {
        threads += 1
        Thread.start(name: "\(name)-\(threads)") { self.serve() }
      } else {
        pthread_cond_signal(available)
      }
      return true
    }

    var acceptedCount: Int {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return accepted
    }

    func end() {
      pthread_mutex_lock(mutex)
      isEnded = true
      pthread_cond_broadcast(available)
      pthread_mutex_unlock(mutex)
    }

    private func serve() {
      pthread_mutex_lock(mutex)
      while true {
        if let work = take() {
          pthread_mutex_unlock(mutex)
          let report = work()
          pthread_mutex_lock(mutex)
          accepted -= 1
          pthread_mutex_unlock(mutex)
          report()
          pthread_mutex_lock(mutex)
        } else if isEnded {
          break
        } else {
          pthread_cond_wait(available, mutex)
        }
      }
      threads -= 1
      pthread_mutex_unlock(mutex)
    }

    private func take() -> Work? {
      guard queueHead < queue.count else { return nil }
      let work = queue[queueHead]
      queueHead += 1
      if queueHead == queue.count {
        queue.removeAll(keepingCapacity: true)
        queueHead = 0
      } else if queueHead > 64, queueHead * 2 > queue.count {
        queue.removeFirst(queueHead)
        queueHead = 0
      }
      return work
    }
  }
}
