/// The one error that crosses a service's edge: a canonical code, a message that is safe to show, a machine-readable
/// reason, and what a client can act on. The cause goes to the log and never to the caller.
package struct ServiceError: Error, Sendable, CustomStringConvertible {
  /// The canonical codes of gRPC; OK is not an error.
  package enum Code: Int32, Sendable, CaseIterable {
    case cancelled = 1
    case unknown = 2
    case invalidArgument = 3
    case deadlineExceeded = 4
    case notFound = 5
    case alreadyExists = 6
    case permissionDenied = 7
    case resourceExhausted = 8
    case failedPrecondition = 9
    case aborted = 10
    case outOfRange = 11
    case unimplemented = 12
    case `internal` = 13
    case unavailable = 14
    case dataLoss = 15
    case unauthenticated = 16

    /// The name as the gRPC specification writes it, such as `NOT_FOUND`.
    package var name: String {
      switch self {
      case .cancelled: "CANCELLED"
      case .unknown: "UNKNOWN"
      case .invalidArgument: "INVALID_ARGUMENT"
      case .deadlineExceeded: "DEADLINE_EXCEEDED"
      case .notFound: "NOT_FOUND"
      case .alreadyExists: "ALREADY_EXISTS"
      case .permissionDenied: "PERMISSION_DENIED"
      case .resourceExhausted: "RESOURCE_EXHAUSTED"
      case .failedPrecondition: "FAILED_PRECONDITION"
      case .aborted: "ABORTED"
      case .outOfRange: "OUT_OF_RANGE"
      case .unimplemented: "UNIMPLEMENTED"
      case .internal: "INTERNAL"
      case .unavailable: "UNAVAILABLE"
      case .dataLoss: "DATA_LOSS"
      case .unauthenticated: "UNAUTHENTICATED"
      }
    }
  }

  /// One field of the request that was refused, and why; travels as `google.rpc.BadRequest.FieldViolation`.
  package struct FieldViolation: Sendable, Equatable {
    /// The path of the field as the proto names it, such as `recipient.email`.
    package let field: String
    package let description: String

    package init(field: String, description: String) {
      self.field = field
      self.description = description
    }
  }

  package let code: Code
  /// One English sentence for a person; no internals.
  package let message: String
  /// UPPER_SNAKE, at most 63 characters; travels as `google.rpc.ErrorInfo.reason`.
  package let reason: String
  package var violations: [FieldViolation]
  /// How long a client should wait before it tries again.
  package var retryAfter: Duration?
  /// Names the line of the log that tells the cause of a fault; travels as `request_id` in `ErrorInfo.metadata`.
  package var requestID: String?
  /// For the log only.
  package var cause: (any Error)?

  package init(
    _ code: Code, _ message: String, reason: String? = nil, violations: [FieldViolation] = [],
    retryAfter: Duration? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.reason = reason ?? code.name
    self.violations = violations
    self.retryAfter = retryAfter
    self.cause = cause
  }

  /// A fault of ours, whose cause is worth a line at the level of errors.
  package var isFault: Bool { code == .internal || code == .unknown || code == .dataLoss }

  package var description: String {
    var text = "\(code.name) \(reason): \(message)"
    if !violations.isEmpty {
      text += " [" + violations.map { "\($0.field): \($0.description)" }.joined(separator: "; ") + "]"
    }
    if let cause { text += " (cause: \(cause))" }
    return text
  }

  /// INVALID_ARGUMENT that names one field.
  package static func invalid(_ field: String, _ description: String) -> ServiceError {
    invalid([FieldViolation(field: field, description: description)])
  }

  /// INVALID_ARGUMENT that names several fields.
  package static func invalid(_ violations: [FieldViolation]) -> ServiceError {
    let text = violations.map { "\($0.field): \($0.description)" }.joined(separator: "; ")
    return ServiceError(.invalidArgument, text, reason: "INVALID_FIELD", violations: violations)
  }

  /// The one answer for a missing object and for another person's: it says nothing about which.
  package static func notFound(_ what: String) -> ServiceError {
    ServiceError(.notFound, "There is no such \(what).", reason: "NOT_FOUND")
  }

  /// The state of things forbids the call; `reason` is what a client branches on.
  package static func precondition(_ reason: String, _ message: String) -> ServiceError {
    ServiceError(.failedPrecondition, message, reason: reason)
  }

  package static func unauthenticated(_ message: String = "Sign in and try again.") -> ServiceError {
    ServiceError(.unauthenticated, message, reason: "UNAUTHENTICATED")
  }

  package static func denied(_ message: String = "This call is not open to you.") -> ServiceError {
    ServiceError(.permissionDenied, message, reason: "PERMISSION_DENIED")
  }

  package static func unavailable(_ message: String, cause: (any Error)? = nil) -> ServiceError {
    ServiceError(.unavailable, message, reason: "UNAVAILABLE", retryAfter: .seconds(1), cause: cause)
  }

  /// A fault of ours; the caller learns nothing but that.
  package static func `internal`(cause: any Error) -> ServiceError {
    ServiceError(.internal, "The service failed; the fault is logged.", reason: "INTERNAL", cause: cause)
  }
}
