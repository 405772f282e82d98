internal import API
internal import Postgres
internal import Primitives

/// The people whose passing is confirmed.
struct AccountStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// Rings once a release is committed.
  static let addedChannel = "delivery_accounts"

  /// Adds a release; a repeat changes nothing.
  func add(_ release: Release) async throws {
    _ = try await transaction.execute(
      """
      INSERT INTO accounts
        (account_id, confirmation_id, administrator_id, statement, signature, key_id, confirm_time)
      VALUES (\(release.account), \(release.confirmation), \(release.administrator), \(release.statement.statement),
        \(release.statement.signature), \(release.statement.keyID), \(release.confirmTime))
      ON CONFLICT (account_id) DO NOTHING
      """)
    _ = try await transaction.query("SELECT pg_notify(\(AccountStore.addedChannel), '')::text")
  }

  /// Marks the schedule as complete. False when another instance has done so meanwhile: then nothing may be kept.
  func markScheduled(_ account: Identifier, senderName: String, timeZone: String) async throws -> Bool {
    try await transaction.execute(
      """
      UPDATE accounts SET schedule_time = now(), sender_name = \(senderName), time_zone = \(timeZone)
      WHERE account_id = \(account) AND schedule_time IS NULL
      """) == 1
  }

  /// The release of an account; nil when its passing is not confirmed.
  static func release(_ account: Identifier, in database: Database) async throws -> Release? {
    try await releases(
      database.query(
        """
        SELECT account_id, confirmation_id, administrator_id, statement, signature, key_id, confirm_time
        FROM accounts WHERE account_id = \(account)
        """)
    ).first
  }

  /// Releases whose messages are not taken up yet, oldest first.
  static func unscheduled(in database: Database) async throws -> [Release] {
    try await releases(
      database.query(
        """
        SELECT account_id, confirmation_id, administrator_id, statement, signature, key_id, confirm_time
        FROM accounts WHERE schedule_time IS NULL ORDER BY confirm_time LIMIT 10000
        """))
  }

  private static func releases(_ rows: [Row]) throws -> [Release] {
    try rows.map { row in
      let (account, confirmation, administrator, statement, signature, key, time) = try row.decode(
        (Identifier, Identifier, Identifier, [UInt8], [UInt8], String, Instant).self)
      return Release(
        account: account, confirmation: confirmation, administrator: administrator,
        statement: ConfirmationV1.SignedStatement(statement: statement, signature: signature, keyID: key),
        confirmTime: time)
    }
  }
}
