internal import Synchronization

/// What a server counts: handlers of streams, and connections that ended for what their peers did.
final class Tally: Sendable {
  private struct State {
    var started = 0
    var running = 0
    var peak = 0
    var faults: [String: Int] = [:]
  }

  private let state = Mutex(State())

  func counting<T>(_ body: () async throws -> T) async throws -> T {
    state.withLock { state in
      state.started += 1
      state.running += 1
      state.peak = max(state.peak, state.running)
    }
    defer { state.withLock { $0.running -= 1 } }
    return try await body()
  }

  func count(fault: String) {
    state.withLock { $0.faults[fault, default: 0] += 1 }
  }

  /// `name=number` for each count, separated by spaces. Asking begins a new peak.
  var text: String {
    state.withLock { state in
      var parts = ["started=\(state.started)", "running=\(state.running)", "peak=\(state.peak)"]
      parts += state.faults.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      state.peak = state.running
      return parts.joined(separator: " ")
    }
  }
}
