internal import API
internal import Postgres
internal import Primitives

/// The record of a confirmed passing.
struct Confirmation: Sendable {
  let id: Identifier
  let account: Identifier
  let administrator: Identifier
  let confirmTime: Instant
}

/// The records; only ever added to.
struct ConfirmationStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  func find(_ account: Identifier) async throws -> Confirmation? {
    let rows = try await transaction.query(
      """
      SELECT confirmation_id, account_id, administrator_id, confirm_time FROM confirmations
      WHERE account_id = \(account)
      """)
    return try rows.first.map { row in
      let (id, account, administrator, time) = try row.decode((Identifier, Identifier, Identifier, Instant).self)
      return Confirmation(id: id, account: account, administrator: administrator, confirmTime: time)
    }
  }

  /// The database's time.
  func now() async throws -> Instant {
    guard let row = try await transaction.query("SELECT now()").first else { throw ServiceError.notFound("time") }
    return try row.decode(Instant.self, at: 0)
  }

  func add(
    _ confirmation: Confirmation, attempt: Attempt, statement: ConfirmationV1.SignedStatement
  ) async throws {
    _ = try await transaction.execute(
      """
      INSERT INTO confirmations (confirmation_id, account_id, administrator_id, designation_id, attempt_id,
        confirm_time, statement, signature, key_id)
      VALUES (\(confirmation.id), \(confirmation.account), \(confirmation.administrator), \(attempt.designation),
        \(attempt.id), \(confirmation.confirmTime), \(statement.statement), \(statement.signature),
        \(statement.keyID))
      """)
  }
}

/// The audit trail; the database chains its entries.
struct AuditStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  func add(_ event: String, _ account: Identifier, by actor: Identifier, _ object: Identifier) async throws {
    _ = try await transaction.execute(
      """
      INSERT INTO audit (account_id, actor_id, event, object_id) VALUES (\(account), \(actor), \(event), \(object))
      """)
  }
}
