internal import API
internal import Postgres
internal import Primitives
internal import Sealing
internal import ServiceKit

/// What accounts are told inside the app.
enum NoticeStore {
  static func binding(_ id: Identifier, _ account: Identifier) -> Binding {
    Binding(table: "notices", column: "sealed_description", row: id, owner: account)
  }

  static func add(
    _ id: Identifier, account: Identifier, type: String, sealed: [UInt8], in transaction: Transaction
  ) async throws {
    _ = try await transaction.execute(
      """
      INSERT INTO notices (notification_id, account_id, type, sealed_description)
      VALUES (\(id), \(account), \(type), \(sealed)) ON CONFLICT DO NOTHING
      """)
  }

  /// Newest first.
  static func page(
    _ account: Identifier, after: TimeCursor?, limit: Int, in database: Database
  ) async throws -> [StoredNotice] {
    let start = after ?? TimeCursor(time: Instant(seconds: 253_402_300_799), id: Identifier(high: .max, low: .max))
    let rows = try await database.query(
      """
      SELECT notification_id, type, sealed_description, create_time, read_time IS NOT NULL FROM notices
      WHERE account_id = \(account) AND (create_time, notification_id) < (\(start.time), \(start.id))
      ORDER BY create_time DESC, notification_id DESC LIMIT \(limit)
      """)
    return try rows.map { row in
      let (id, type, sealed, time, read) = try row.decode((Identifier, String, [UInt8], Instant, Bool).self)
      return StoredNotice(id: id, type: type, sealed: sealed, createTime: time, read: read)
    }
  }

  static func unread(_ account: Identifier, in database: Database) async throws -> Int32 {
    let rows = try await database.query(
      "SELECT count(*)::integer FROM notices WHERE account_id = \(account) AND read_time IS NULL")
    return try rows.first?.decode(Int32.self, at: 0) ?? 0
  }

  static func markRead(_ ids: [Identifier], of account: Identifier, in transaction: Transaction) async throws {
    _ = try await transaction.execute(
      """
      UPDATE notices SET read_time = now()
      WHERE account_id = \(account) AND notification_id = ANY(\(ids)) AND read_time IS NULL
      """)
  }
}

/// One notice, still sealed.
struct StoredNotice: Sendable {
  let id: Identifier
  let type: String
  let sealed: [UInt8]
  let createTime: Instant
  let read: Bool
}
