internal import Glibc
internal import Synchronization

/// Orderly stop: SIGTERM and SIGINT are asked for once; a second one ends the process at once.
package enum ProcessSignals {
  private static let waiting = Mutex<(arrived: Bool, continuation: CheckedContinuation<Void, Never>?)>((false, nil))

  /// Takes the signals over; called first in `main`, before any thread is made.
  package static func takeOver() {
    signal(SIGPIPE, SIG_IGN)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    var thread = pthread_t()
    pthread_create(&thread, nil, { _ in ProcessSignals.listen() }, nil)
    pthread_detach(thread)
  }

  /// Returns when the process is asked to stop.
  package static func waitForStop() async {
    await withCheckedContinuation { continuation in
      let arrived = waiting.withLock { state in
        if !state.arrived { state.continuation = continuation }
        return state.arrived
      }
      if arrived { continuation.resume() }
    }
  }

  private static func listen() -> UnsafeMutableRawPointer? {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    var received: Int32 = 0
    sigwait(&set, &received)
    let continuation = waiting.withLock { state in
      state.arrived = true
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume()
    sigwait(&set, &received)
    _exit(128 + received)
  }
}
