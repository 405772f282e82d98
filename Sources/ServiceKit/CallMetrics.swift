package import Primitives
package import RPC
internal import Synchronization

/// The calls of one side, server or client, by method and outcome: `rpc_server_call_duration_seconds` and
/// `rpc_client_call_duration_seconds`, labelled as OpenTelemetry's conventions for RPC say.
package final class CallMetrics: Sendable {
  package enum Side: String, Sendable { case server, client }

  /// What requests for methods that are not served count as: a peer must not be able to invent labels.
  private static let other = "other"

  /// One method's durations, by code; 0 is OK. A code has buckets once it has occurred.
  private final class Method: Sendable {
    let name: String
    let byCode = Mutex<[DurationBuckets?]>(Array(repeating: nil, count: 17))

    init(_ name: String) { self.name = name }

    func record(_ error: ServiceError?, _ duration: Duration) {
      let code = Int(error?.code.rawValue ?? 0)
      byCode.withLock { series in
        if series[code] == nil { series[code] = DurationBuckets() }
        series[code]?.record(duration)
      }
    }
  }

  private let side: Side
  private let methods = Mutex<[ObjectIdentifier: Method]>([:])
  private let stray = Method(CallMetrics.other)

  package init(_ side: Side, _ metrics: Metrics) {
    self.side = side
    metrics.add { [self] text in write(&text) }
  }

  package func record(_ method: MethodDescriptor, _ error: ServiceError?, _ duration: Duration) {
    let entry = methods.withLock { methods in
      if let entry = methods[method.identity] { return entry }
      let entry = Method(String(method.path.dropFirst()))
      methods[method.identity] = entry
      return entry
    }
    entry.record(error, duration)
  }

  /// A request that named no method.
  package func recordStray(_ error: ServiceError) { stray.record(error, .zero) }

  private func write(_ text: inout MetricsText) {
    let name = "rpc_\(side.rawValue)_call_duration_seconds"
    text.family(name, .histogram, "Duration of calls, from their headers to their status.")
    let known = methods.withLock { Array($0.values) }.sorted { $0.name < $1.name }
    for method in known + [stray] {
      for (code, buckets) in method.byCode.withLock({ $0 }).enumerated() {
        guard let buckets else { continue }
        text.histogram(name, labels(method.name, ServiceError.Code(rawValue: Int32(code))), buckets)
      }
    }
  }

  private func labels(_ method: String, _ code: ServiceError.Code?) -> [(String, String)] {
    var labels = [
      ("rpc_system_name", "grpc"), ("rpc_method", method), ("rpc_status_code", code?.name ?? "OK"),
    ]
    if let code, isFailure(code) { labels.append(("error_type", code.name)) }
    return labels
  }

  /// At a server what the caller did wrong is no failure of the service.
  private func isFailure(_ code: ServiceError.Code) -> Bool {
    if side == .client { return true }
    switch code {
    case .unknown, .deadlineExceeded, .unimplemented, .internal, .unavailable, .dataLoss: return true
    default: return false
    }
  }
}
