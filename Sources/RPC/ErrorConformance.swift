internal import Primitives

/// What every error must keep to that leaves a handler, whoever threw it.
enum ErrorConformance {
  static let reasonLengthMax = 63

  /// - A fault has a request id: that of the call, unless a service further on has named it already.
  /// - A reason is UPPER_SNAKE of at most 63 characters; what is none becomes the code's name.
  /// - UNAVAILABLE says when to try again.
  static func conforming(_ error: ServiceError, _ context: CallContext) -> ServiceError {
    var error = error
    if !isReason(error.reason) {
      let named = error
      error = ServiceError(
        named.code, named.message, violations: named.violations, retryAfter: named.retryAfter, cause: named.cause)
      error.requestID = named.requestID
    }
    if error.isFault, error.requestID == nil { error.requestID = context.trace.spanIDText }
    if error.code == .unavailable, error.retryAfter == nil { error.retryAfter = .seconds(1) }
    return error
  }

  static func isReason(_ text: String) -> Bool {
    guard 1...reasonLengthMax ~= text.utf8.count else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
      default: false
      }
    }
  }
}
