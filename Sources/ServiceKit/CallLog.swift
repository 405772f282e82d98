internal import Primitives
internal import RPC

/// One line for each call: what, who, how it ended, how long it took; never what was said.
enum CallLog {
  static let write: @Sendable (CallContext, ServiceError?, Duration, Int, Int) -> Void = {
    context, error, duration, bytesIn, bytesOut in
    let caller: String
    switch context.caller {
    case .anonymous: caller = "anonymous"
    case .account(let account): caller = "account:\(account.accountID)"
    case .service(let name): caller = "service:\(name)"
    }
    let fields: KeyValuePairs<String, Log.Value> = [
      "method": .text(context.method.path), "caller": .text(caller),
      "code": .text(error?.code.name ?? "OK"), "reason": .text(error?.reason ?? ""),
      "microseconds": .number(duration.microseconds), "bytes_in": .number(Int64(bytesIn)),
      "bytes_out": .number(Int64(bytesOut)),
      "traceparent": .text(context.traceparent ?? ""),
    ]
    switch error?.code {
    case .unknown?, .internal?, .dataLoss?:
      Log.error("call failed", fields)
      if let cause = error?.cause { Log.error("cause", ["cause": .text("\(cause)")]) }
    default: Log.info("call", fields)
    }
  }
}
