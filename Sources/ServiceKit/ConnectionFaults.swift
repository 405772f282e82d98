internal import Synchronization

/// Connections that were refused or ended for what their peers did, by reason: `rpc_server_connection_faults_total`.
final class ConnectionFaults: Sendable {
  private static let name = "rpc_server_connection_faults_total"

  private let byReason = Mutex<[String: Int]>([:])

  init(_ metrics: Metrics) {
    metrics.add { [self] text in
      text.family(Self.name, .counter, "Connections refused or ended for what their peers did.")
      for (reason, count) in byReason.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
        text.sample(Self.name, [("reason", reason)], Double(count))
      }
    }
  }

  func count(_ reason: String) { byReason.withLock { $0[reason, default: 0] += 1 } }
}
