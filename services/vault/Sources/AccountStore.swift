internal import Postgres
internal import Primitives

/// The authors' rows: the lock that all writes of one account share, and the freeze.
struct AccountStore {
  let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// Locks the account until the transaction ends. Throws FAILED_PRECONDITION (ACCOUNT_CLOSED) after the freeze.
  func lockOpen(_ account: Identifier) async throws {
    guard try await lock(account) == nil else {
      throw ServiceError.precondition("ACCOUNT_CLOSED", "This account is closed; nothing in it can be changed.")
    }
  }

  /// Locks the account until the transaction ends, making its row if there is none; returns when it was frozen.
  func lock(_ account: Identifier) async throws -> Instant? {
    if let row = try await locked(account) { return row.freezeTime }
    try await transaction.execute("INSERT INTO accounts (account_id) VALUES (\(account)) ON CONFLICT DO NOTHING")
    return try await locked(account)?.freezeTime
  }

  /// From the commit on nothing of the account changes; a repeat changes nothing.
  func freeze(_ account: Identifier) async throws {
    guard try await lock(account) == nil else { return }
    try await transaction.execute("UPDATE accounts SET freeze_time = now() WHERE account_id = \(account)")
  }

  private func locked(_ account: Identifier) async throws -> (freezeTime: Instant?, Void)? {
    let rows = try await transaction.query(
      "SELECT freeze_time FROM accounts WHERE account_id = \(account) FOR UPDATE")
    return try rows.first.map { (try $0.decode(Instant?.self, at: 0), ()) }
  }
}
