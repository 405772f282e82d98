package import Postgres
package import Primitives

/// Why a session ended.
package enum SessionEnd: String, Sendable {
  case loggedOut = "logged_out"
  case tokenReused = "token_reused"
  case accountClosed = "account_closed"
}

/// A session and the account it belongs to, as a refresh sees them.
struct SessionRow: Sendable {
  let accountID: Identifier
  let emailVerified: Bool
  let isLive: Bool
  let now: Instant
}

/// The statements over sessions and their refresh tokens.
package struct SessionStore: Sendable {
  private let transaction: Transaction

  package init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// Returns the database's time.
  func insert(_ id: Identifier, of accountID: Identifier) async throws -> Instant {
    let rows = try await transaction.query(
      "INSERT INTO sessions (session_id, account_id) VALUES (\(id), \(accountID)) RETURNING create_time")
    return try rows[0].decode(Instant.self, at: 0)
  }

  func insertToken(_ hash: [UInt8], of sessionID: Identifier) async throws {
    try await transaction.execute(
      "INSERT INTO refresh_tokens (token_hash, session_id) VALUES (\(hash), \(sessionID))")
  }

  /// Spends a token and returns its session; nil when it is unknown or spent already. Of two calls at once one spends.
  func spendToken(_ hash: [UInt8]) async throws -> Identifier? {
    try await transaction.query(
      """
      UPDATE refresh_tokens SET spend_time = now() WHERE token_hash = \(hash) AND spend_time IS NULL
      RETURNING session_id
      """
    ).first?.decode(Identifier.self, at: 0)
  }

  /// The session of a token, spent or not.
  func session(ofToken hash: [UInt8]) async throws -> Identifier? {
    try await transaction.query("SELECT session_id FROM refresh_tokens WHERE token_hash = \(hash)")
      .first?.decode(Identifier.self, at: 0)
  }

  /// The session, held until the transaction ends.
  func lock(_ id: Identifier) async throws -> SessionRow? {
    let rows = try await transaction.query(
      """
      SELECT accounts.account_id, email_verified_time IS NOT NULL,
        status = 'active' AND passing_confirmed_time IS NULL, sessions.create_time, last_use_time,
        end_time IS NOT NULL, now()
      FROM sessions JOIN accounts USING (account_id) WHERE session_id = \(id) FOR UPDATE OF sessions
      """)
    guard let row = rows.first else { return nil }
    let (accountID, emailVerified, takesSignIns, created, lastUsed, ended, now) = try row.decode(
      (Identifier, Bool, Bool, Instant, Instant, Bool, Instant).self)
    let isLive = SessionRules.isLive(created: created, lastUsed: lastUsed, ended: ended, at: now)
    return SessionRow(accountID: accountID, emailVerified: emailVerified, isLive: isLive && takesSignIns, now: now)
  }

  func touch(_ id: Identifier) async throws {
    try await transaction.execute("UPDATE sessions SET last_use_time = now() WHERE session_id = \(id)")
  }

  func end(_ id: Identifier, _ reason: SessionEnd) async throws {
    try await transaction.execute(
      """
      UPDATE sessions SET end_time = now(), end_reason = \(reason.rawValue)
      WHERE session_id = \(id) AND end_time IS NULL
      """)
  }

  package func endAll(of accountID: Identifier, _ reason: SessionEnd) async throws {
    try await transaction.execute(
      """
      UPDATE sessions SET end_time = now(), end_reason = \(reason.rawValue)
      WHERE account_id = \(accountID) AND end_time IS NULL
      """)
  }
}
