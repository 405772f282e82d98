internal import EventLoop
internal import Events
internal import Glibc
internal import Synchronization

/// Orderly stop: SIGTERM and SIGINT are asked for once; a second one ends the process at once. SIGHUP has certificates
/// read again.
package enum ProcessSignals {
  private static let waiting = Mutex<(arrived: Bool, continuation: CheckedContinuation<Void, Never>?)>((false, nil))

  /// Rings at each SIGHUP.
  static let hangUps = Signal()

  /// Handlers write the signal's number here. A mask would not do: threads that exist already would not have it.
  private static let channel: (reader: Int32, writer: Int32) = {
    var descriptors: [Int32] = [-1, -1]
    _ = pipe(&descriptors)
    return (descriptors[0], descriptors[1])
  }()

  /// Takes the signals over and readies what is of the whole process; called first in `main`.
  package static func takeOver() {
    signal(SIGPIPE, SIG_IGN)
    TLSLibrary.prepare()
    precondition(channel.reader >= 0, "a process has room for a pipe at its start")
    for number in [SIGTERM, SIGINT, SIGHUP] {
      signal(number) { received in
        var byte = UInt8(truncatingIfNeeded: received)
        _ = write(ProcessSignals.channel.writer, &byte, 1)
      }
    }
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
    _ = nextStop()
    let continuation = waiting.withLock { state in
      state.arrived = true
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume()
    _exit(128 + nextStop())
  }

  private static func nextStop() -> Int32 {
    while true {
      let number = next()
      if number != SIGHUP { return number }
      hangUps.ring()
    }
  }

  private static func next() -> Int32 {
    var byte: UInt8 = 0
    while read(channel.reader, &byte, 1) != 1 {}
    return Int32(byte)
  }
}
