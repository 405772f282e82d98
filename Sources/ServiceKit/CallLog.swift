internal import Primitives
internal import RPC

/// One line for each call: what, who, how it ended, how long it took; never what was said.
enum CallLog {
  static let write: @Sendable (CallContext, ServiceError?, Duration, Int, Int) -> Void = {
    context, error, duration, bytesIn, bytesOut in
    let fields = fields(context, error, duration, bytesIn, bytesOut)
    if error?.isFault == true { Log.error("call failed", fields) } else { Log.info("call", fields) }
  }

  /// `request_id` is what a caller was told with a fault, `cause` what a caller is never told.
  static func fields(
    _ context: CallContext, _ error: ServiceError?, _ duration: Duration, _ bytesIn: Int, _ bytesOut: Int
  ) -> KeyValuePairs<String, Log.Value> {
    let trace = context.trace
    let cause = error?.isFault == true ? error?.cause : nil
    return [
      "method": .text(context.method.path), "caller": .text(context.caller.scope),
      "code": .text(error?.code.name ?? "OK"), "reason": .text(error?.reason ?? ""),
      "microseconds": .number(duration.microseconds), "bytes_in": .number(Int64(bytesIn)),
      "bytes_out": .number(Int64(bytesOut)), "trace": .text(trace.traceIDText),
      "request_id": .text(error?.requestID ?? trace.spanIDText),
      "cause": .text(cause.map { "\($0)" } ?? ""),
    ]
  }
}
