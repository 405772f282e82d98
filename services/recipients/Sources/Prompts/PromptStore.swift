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

  /// A new link, good for 90 days; older ones end. `address` is the keyed digest of the address that is asked.
  func add(_ token: LinkToken, for recipient: Identifier, of account: Identifier, address: [UInt8]) async throws {
    try await void(recipient)
    _ = try await transaction.execute(
      """
      INSERT INTO prompts (token_hash, recipient_id, expire_time)
      VALUES (\(token.hash), \(recipient), now() + interval '90 days')
      """)
    _ = try await transaction.execute(
      "UPDATE recipients SET prompt_time = now(), revision = revision + 1 WHERE recipient_id = \(recipient)")
    _ = try await transaction.execute(
      """
      INSERT INTO prompted_addresses (account_id, address, prompt_time) VALUES (\(account), \(address), now())
      ON CONFLICT (account_id, address) DO UPDATE SET prompt_time = now()
      """)
  }

  /// Ends the links of a recipient.
  func void(_ recipient: Identifier) async throws {
    _ = try await transaction.execute(
      "UPDATE prompts SET void_time = now() WHERE recipient_id = \(recipient) AND void_time IS NULL")
  }

  /// How many seconds until the account may have that address asked again; 0 when it may now.
  func secondsUntilNext(_ account: Identifier, address: [UInt8]) async throws -> Double {
    let rows = try await transaction.query(
      """
      SELECT greatest(0, extract(epoch FROM prompt_time + interval '7 days' - now()))::float8
      FROM prompted_addresses WHERE account_id = \(account) AND address = \(address)
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
  func find(_ token: LinkToken) async throws -> Prompt? {
    try PromptStore.prompt(await transaction.query(PromptStore.open(token)))
  }

  static func find(_ token: LinkToken, in database: Database) async throws -> Prompt? {
    try prompt(await database.query(open(token)))
  }

  private static func open(_ token: LinkToken) -> Query {
    """
    SELECT r.recipient_id, r.account_id, r.name, r.acceptance
    FROM prompts p JOIN recipients r ON r.recipient_id = p.recipient_id
    WHERE p.token_hash = \(token.hash) AND p.void_time IS NULL AND p.expire_time > now()
    """
  }

  private static func prompt(_ rows: [Row]) throws -> Prompt? {
    try rows.first.map { row in
      let (recipient, account, name, acceptance) = try row.decode(
        (Identifier, Identifier, String, Acceptance).self)
      return Prompt(recipient: recipient, account: account, recipientName: name, acceptance: acceptance)
    }
  }
}
