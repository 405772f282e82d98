package import Postgres
internal import Primitives

/// The statements over accounts.
package struct AccountStore: Sendable {
  private let transaction: Transaction

  package init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// ALREADY_EXISTS (EMAIL_TAKEN) when an account holds the address.
  func insert(_ registration: Registration, passwordHash: String, answerHash: String) async throws -> Account {
    do {
      let rows = try await transaction.query(
        """
        INSERT INTO accounts (account_id, email, email_key, display_name, time_zone, password_hash, security_question,
          security_answer_hash)
        VALUES (\(Identifier()), \(registration.email), \(registration.emailKey), \(registration.displayName),
          \(registration.timeZone), \(passwordHash), \(registration.questionID), \(answerHash))
        RETURNING \(Account.columns)
        """)
      return try Account(rows[0])
    } catch let error as PostgresError where error.isUniqueViolation("accounts_email_taken") {
      throw ServiceError(
        .alreadyExists, "An account with this email address exists already; sign in instead.", reason: "EMAIL_TAKEN")
    }
  }

  /// The account, held against changes until the transaction ends.
  func hold(_ id: Identifier) async throws -> Account? {
    try await transaction.query("SELECT \(Account.columns) FROM accounts WHERE account_id = \(id) FOR SHARE")
      .first.map(Account.init)
  }

  /// The account, for a change that must come one at a time.
  func lock(_ id: Identifier) async throws -> Account? {
    try await transaction.query(
      "SELECT \(Account.columns) FROM accounts WHERE account_id = \(id) FOR NO KEY UPDATE"
    ).first.map(Account.init)
  }

  func setPasswordHash(_ hash: String, of id: Identifier) async throws {
    try await transaction.execute("UPDATE accounts SET password_hash = \(hash) WHERE account_id = \(id)")
  }

  func setEmailVerified(_ id: Identifier) async throws {
    try await transaction.execute(
      """
      UPDATE accounts SET email_verified_time = now() WHERE account_id = \(id) AND email_verified_time IS NULL
      """)
  }

  func acceptTerms(_ id: Identifier, version: Int32) async throws {
    try await transaction.execute(
      "INSERT INTO terms_acceptances (account_id, kind, version) VALUES (\(id), 'terms', \(version))")
  }

  /// Marks the passing as confirmed; false when it was already, or there is no such account.
  func close(_ id: Identifier) async throws -> Bool {
    try await transaction.execute(
      """
      UPDATE accounts SET passing_confirmed_time = now()
      WHERE account_id = \(id) AND passing_confirmed_time IS NULL
      """) == 1
  }
}

/// Reads of accounts that are one statement.
struct AccountReader: Sendable {
  let database: Database

  func account(_ id: Identifier) async throws -> Account? {
    try await accounts([id]).first
  }

  func accounts(_ ids: [Identifier]) async throws -> [Account] {
    try await database.query("SELECT \(Account.columns) FROM accounts WHERE account_id = ANY(\(ids))").map(Account.init)
  }

  /// Account ids by key, for the addresses that are proved.
  func verifiedAccounts(emailKeys: [String]) async throws -> [String: Identifier] {
    let rows = try await database.query(
      """
      SELECT email_key, account_id FROM accounts
      WHERE email_key = ANY(\(emailKeys)) AND email_verified_time IS NOT NULL
      """)
    return Dictionary(
      uniqueKeysWithValues: try rows.map { row in
        let (key, id) = try row.decode((String, Identifier).self)
        return (key, id)
      })
  }

  func credentials(emailKey: String) async throws -> (id: Identifier, passwordHash: String)? {
    let rows = try await database.query(
      "SELECT account_id, password_hash FROM accounts WHERE email_key = \(emailKey)")
    guard let row = rows.first else { return nil }
    let (id, hash) = try row.decode((Identifier, String).self)
    return (id, hash)
  }

  func securityQuestion(_ id: Identifier) async throws -> (questionID: String, answerHash: String)? {
    let rows = try await database.query(
      "SELECT security_question, security_answer_hash FROM accounts WHERE account_id = \(id)")
    guard let row = rows.first else { return nil }
    let (question, hash) = try row.decode((String, String).self)
    return (question, hash)
  }
}
