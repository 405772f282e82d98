internal import Postgres
internal import Primitives

/// The statements over mailed verification links.
struct VerificationStore: Sendable {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// Voids the older link and stores a new one for the account's present address, good for 24 h.
  func replace(for accountID: Identifier, tokenHash: [UInt8]) async throws {
    try await transaction.execute(
      """
      UPDATE email_verifications SET void_time = now()
      WHERE account_id = \(accountID) AND spend_time IS NULL AND void_time IS NULL
      """)
    try await transaction.execute(
      """
      INSERT INTO email_verifications (token_hash, account_id, email_key, expire_time)
      SELECT \(tokenHash), account_id, email_key, now() + interval '24 hours' FROM accounts
      WHERE account_id = \(accountID)
      """)
  }

  /// Mails of the last hour, and how many seconds until the oldest of them no longer counts.
  func mailsOfLastHour(of accountID: Identifier) async throws -> (count: Int, secondsToNext: Double) {
    let rows = try await transaction.query(
      """
      SELECT count(*), coalesce(extract(epoch FROM min(create_time) + interval '1 hour' - now()), 0)::float8
      FROM email_verifications WHERE account_id = \(accountID) AND create_time > now() - interval '1 hour'
      """)
    let (count, seconds) = try rows[0].decode((Int, Double).self)
    return (count, seconds)
  }

  /// Spends a link; nil when it is unknown, spent, voided, expired or was mailed to another address than the present.
  func spend(tokenHash: [UInt8]) async throws -> (accountID: Identifier, displayName: String)? {
    let rows = try await transaction.query(
      """
      UPDATE email_verifications SET spend_time = now() FROM accounts
      WHERE token_hash = \(tokenHash) AND spend_time IS NULL AND void_time IS NULL AND expire_time > now()
        AND accounts.account_id = email_verifications.account_id
        AND accounts.email_key = email_verifications.email_key
      RETURNING accounts.account_id, accounts.display_name
      """)
    guard let row = rows.first else { return nil }
    let (accountID, displayName) = try row.decode((Identifier, String).self)
    return (accountID, displayName)
  }
}
