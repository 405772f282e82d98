internal import API
internal import Postgres
internal import Primitives
internal import ServiceKit

/// What delivery reads: ready messages and nothing else.
struct ReleaseReader {
  let database: Database

  init(_ database: Database) {
    self.database = database
  }

  /// The account's ready messages in order of creation, after `cursor`.
  func list(
    of account: Identifier, after cursor: TimeCursor?, limit: Int
  ) async throws -> [StoredMessage] {
    let after: Query = cursor.map { " AND (create_time, message_id) > (\($0.time), \($0.id))" } ?? ""
    let rows = try await database.query(
      """
      SELECT \(StoredMessage.columns) FROM messages
      WHERE owner_id = \(account) AND status = \(VaultV1.MessageStatus.ready.rawValue)\(after)
      ORDER BY create_time, message_id LIMIT \(limit)
      """)
    return try rows.map { try StoredMessage($0) }
  }

  /// One ready message with its sealed body, and the line in the audit table that says so; nil, and no line, when
  /// there is none.
  func read(
    _ id: Identifier, of passing: ProvedPassing, by caller: String
  ) async throws -> (message: StoredMessage, body: [UInt8])? {
    let rows = try await database.query(
      """
      WITH found AS (
        SELECT \(StoredMessage.columns), body FROM messages
        WHERE message_id = \(id) AND owner_id = \(passing.accountID)
          AND status = \(VaultV1.MessageStatus.ready.rawValue)
      ), noted AS (
        INSERT INTO release_reads (message_id, owner_id, confirmation_id, caller)
        SELECT message_id, \(passing.accountID), \(passing.confirmationID), \(caller) FROM found
      )
      SELECT * FROM found
      """)
    return try rows.first.map { (try StoredMessage($0), try $0.decode([UInt8].self, at: $0.columnCount - 1)) }
  }
}
