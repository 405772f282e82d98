internal import HTTP2
internal import Primitives

/// What the header blocks of a response say about its outcome.
struct ClientStatus {
  private(set) var httpStatus = 0
  private(set) var isGRPC = false
  /// The service's messages may be compressed by gzip.
  private(set) var isGzip = false
  private var code: Int32?
  private var message = ""
  private var details: [UInt8]?
  private(set) var pushback = RetryPolicy.Pushback.none

  /// False when the field is none of the protocol's own.
  mutating func add(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
    switch name.count {
    case 7 where name.equals(":status"): httpStatus = Int(value.text) ?? 0
    case 12 where name.equals("content-type"): isGRPC = RequestHead.isGRPC(value)
    case 11 where name.equals("grpc-status"):
      code = value.equals("0") ? 0 : Int32(value.text) ?? ServiceError.Code.unknown.rawValue
    case 12 where name.equals("grpc-message"): message = PercentEncoding.decode(value.text)
    case 13 where name.equals("grpc-encoding"): isGzip = value.equals("gzip")
    case 22 where name.equals("grpc-retry-pushback-ms"): pushback = RetryPolicy.Pushback(value.text)
    case 23 where name.equals("grpc-status-details-bin"): details = Base64.decode(value.text)
    default: return false
    }
    return true
  }

  /// Forgets an interim (1xx) answer.
  mutating func forget() { self = ClientStatus() }

  var isInterim: Bool { 100..<200 ~= httpStatus }

  /// An answer that is no gRPC and will not become one.
  var isForeign: Bool { httpStatus != 200 || !isGRPC }

  /// The outcome once the peer has ended its side; nil for OK.
  var error: ServiceError? {
    if let code {
      if code == 0 { return nil }
      let known = ServiceError.Code(rawValue: code) ?? .unknown
      if let details { return StatusDetails.decode(details, code: known, message: message) }
      return ServiceError(known, message)
    }
    guard httpStatus != 200 else { return ServiceError(.unknown, "The service ended the call without a status.") }
    let code: ServiceError.Code =
      switch httpStatus {
      case 400: .internal
      case 401: .unauthenticated
      case 403: .permissionDenied
      case 404: .unimplemented
      case 429, 502, 503, 504: .unavailable
      default: .unknown
      }
    return ServiceError(code, "The service answered with HTTP status \(httpStatus).")
  }

  /// The outcome of a stream that was cut before its status came.
  static func error(_ code: HTTP2ErrorCode) -> ServiceError {
    switch code {
    case .connectionLost: .unavailable("The connection to the service was lost.")
    case .refusedStream: .unavailable("The service refused the call before it began.")
    case .cancel: ServiceError(.cancelled, "The service cancelled the call.")
    case .enhanceYourCalm: ServiceError(.resourceExhausted, "The service asks for fewer calls.")
    default: ServiceError(.internal, "The call's stream ended with HTTP/2 error \(code.rawValue).")
    }
  }
}
