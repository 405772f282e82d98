private import CPostgres
internal import Primitives

/// PostgreSQL refused a statement. Loss of the connection is not this but `ServiceError` UNAVAILABLE.
package struct PostgresError: Error, Sendable, CustomStringConvertible {
  /// Five characters, such as `23505`.
  package let sqlState: String
  /// The constraint that was violated.
  package let constraint: String?
  package let table: String?
  package let column: String?
  /// The server's sentence; may quote a value, so it is for code and tests, and `description` leaves it out where it
  /// would.
  package let message: String
  /// May hold values of the row; never part of `description`.
  package let detail: String?

  package init(
    sqlState: String, message: String, constraint: String? = nil, table: String? = nil, column: String? = nil,
    detail: String? = nil
  ) {
    self.sqlState = sqlState
    self.message = message
    self.constraint = constraint
    self.table = table
    self.column = column
    self.detail = detail
  }

  /// Whether the named unique or primary key constraint (or unique index) was violated.
  package func isUniqueViolation(_ constraint: String) -> Bool {
    sqlState == "23505" && self.constraint == constraint
  }

  /// Any unique violation.
  package var isUniqueViolation: Bool { sqlState == "23505" }
  package var isForeignKeyViolation: Bool { sqlState == "23503" }
  package var isCheckViolation: Bool { sqlState == "23514" }
  /// A serialization failure or a deadlock: the same transaction may succeed when run again.
  package var isRetryable: Bool { sqlState == "40001" || sqlState == "40P01" }

  /// Safe to log: codes and names, and the message unless its class quotes values (22, data exception; P0, raised).
  package var description: String {
    var text = "SQLSTATE \(sqlState)"
    if let table { text += " table \(table)" }
    if let column { text += " column \(column)" }
    if let constraint { text += " constraint \(constraint)" }
    if !sqlState.hasPrefix("22"), !sqlState.hasPrefix("P0") { text += ": \(message)" }
    return text
  }
}

extension PostgresError {
  /// Of a PGresult whose status says that the statement failed.
  init(result: OpaquePointer?) {
    func field(_ code: Character) -> String? {
      PQresultErrorField(result, Int32(code.asciiValue ?? 0)).map { String(cString: $0) }
    }
    self.init(
      sqlState: field("C") ?? "", message: field("M") ?? String(cString: PQresultErrorMessage(result)),
      constraint: field("n"), table: field("t"), column: field("c"), detail: field("D"))
  }

  /// What cancelling gives, and the statement timeout.
  var isCancellation: Bool { sqlState == "57014" }

  /// The prepared statement is gone or no longer fits the tables (after a migration): prepare it again.
  var isStalePlan: Bool { sqlState == "26000" || (sqlState == "0A000" && message.contains("cached plan")) }

  /// The server is going away, starting or full; also what libpq reports without a code when the connection broke.
  var isConnectionLoss: Bool {
    switch sqlState {
    case "", "57P01", "57P02", "57P03", "57P05", "53300", "25P03": true
    default: sqlState.hasPrefix("08")
    }
  }

  /// As callers of `Database` see it.
  var asThrown: any Error {
    if isConnectionLoss { return ServiceError.databaseUnavailable(self) }
    if isCancellation {
      return ServiceError(
        .deadlineExceeded, "The request took too long.", reason: "STATEMENT_TIMEOUT", cause: self)
    }
    return self
  }
}

extension ServiceError {
  static func databaseUnavailable(_ cause: (any Error)?) -> ServiceError {
    .unavailable("The service cannot reach its data just now; try again.", cause: cause)
  }

  static var databaseBusy: ServiceError {
    ServiceError(
      .resourceExhausted, "The service is busy; try again in a moment.", reason: "DATABASE_BUSY",
      retryAfter: .seconds(1))
  }

  /// The connection broke after the statement or the COMMIT had been sent: it may have taken effect or not.
  static func outcomeUnknown(_ cause: (any Error)?) -> ServiceError {
    ServiceError(
      .unavailable, "The service lost its data store before it could learn the outcome; try again.",
      reason: "COMMIT_UNKNOWN", retryAfter: .seconds(1), cause: cause)
  }
}
