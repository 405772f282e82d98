internal import HTTP2
internal import Synchronization

/// What the loops of a server count together.
final class ServerTotals: Sendable {
  private struct Counts {
    var all = 0
    var byHost: [String: Int] = [:]
  }

  let output: OutputBudget
  private let limits: ServerLimits
  private let counts = Mutex(Counts())

  init(_ limits: ServerLimits) {
    self.limits = limits
    output = OutputBudget(bytesMax: limits.unsentBytesTotalMax)
  }

  /// Counts a connection; false when there are too many, of that host or in all.
  func admits(_ host: String) -> Bool {
    counts.withLock { counts in
      let ofHost = counts.byHost[host] ?? 0
      guard counts.all < limits.connectionsMax, ofHost < limits.connectionsPerAddressMax else { return false }
      counts.all += 1
      counts.byHost[host] = ofHost + 1
      return true
    }
  }

  func leaves(_ host: String) {
    counts.withLock { counts in
      counts.all -= 1
      let ofHost = counts.byHost[host] ?? 1
      counts.byHost[host] = ofHost > 1 ? ofHost - 1 : nil
    }
  }
}
