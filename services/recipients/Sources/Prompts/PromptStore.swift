internal import Postgres
internal import Primitives
internal import Sealing

/// What a prompt's link stands for.
struct Prompt: Sendable {
  let recipient: Identifier
  let account: Identifier
  let recipientName: String
  let acceptance: Acceptance
}

/// Acceptance prompts and their answers.
struct PromptStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// A new link, good for 90 days; older ones end.
  func add(_ token: LinkToken, for recipient: Identifier) async throws {
    try await void(recipient)
    _ = try await transaction.execute(
      """
      INSERT INTO prompts (token_hash, recipient_id, expire_time)
      VALUES (\(token.hash), \(recipient), now() + interval '90 days')
      """)
    _ = try await transaction.execute(
      "UPDATE recipients SET prompt_time = now(), revision = revision + 1 WHERE recipient_id = \(recipient)")
  }

  /// Ends the links of a recipient.
  func void(_ recipient: Identifier) async throws {
    _ = try await transaction.execute(
      "UPDATE prompts SET void_time = now() WHERE recipient_id = \(recipient) AND void_time IS NULL")
  }

  /// How many seconds until a recipient may be prompted again; 0 when it may be now.
  func secondsUntilNext(_ recipient: Identifier) async throws -> Double {
    let rows = try await transaction.query(
      """
      SELECT greatest(0, coalesce(extract(epoch FROM prompt_time + interval '7 days' - now()), 0))::float8
      FROM recipients WHERE recipient_id = \(recipient)
      """)
    return try rows.first?.decode(Double.self, at: 0) ?? 0
  }

  /// False when the answer was the same before.
  func answer(_ recipient: Identifier, _ acceptance: Acceptance) async throws -> Bool {
    try await transaction.execute(
      """
      UPDATE recipients SET acceptance = \(acceptance), revision = revision + 1
      WHERE recipient_id = \(recipient) AND acceptance <> \(acceptance)
      """) == 1
  }

  /// nil when the link is unknown, ended or past its time.
  static func find(_ token: LinkToken, in database: Database) async throws -> Prompt? {
    let rows = try await database.query(
      """
      SELECT r.recipient_id, r.account_id, r.name, r.acceptance
      FROM prompts p JOIN recipients r ON r.recipient_id = p.recipient_id
      WHERE p.token_hash = \(token.hash) AND p.void_time IS NULL AND p.expire_time > now()
      """)
    return try rows.first.map { row in
      let (recipient, account, name, acceptance) = try row.decode(
        (Identifier, Identifier, String, Acceptance).self)
      return Prompt(recipient: recipient, account: account, recipientName: name, acceptance: acceptance)
    }
  }
}
