internal import API
internal import Postgres
internal import Primitives
internal import ServiceKit

/// The rows of messages, within one transaction.
struct MessageStore {
  let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  func count(of owner: Identifier) async throws -> Int {
    let rows = try await transaction.query("SELECT count(*) FROM messages WHERE owner_id = \(owner)")
    return try rows.first?.decode(Int.self, at: 0) ?? 0
  }

  /// The owner's message as it stands; nil when there is none.
  func find(_ id: Identifier, of owner: Identifier) async throws -> StoredMessage? {
    let rows = try await transaction.query(
      "SELECT \(StoredMessage.columns) FROM messages WHERE message_id = \(id) AND owner_id = \(owner) FOR UPDATE")
    return try rows.first.map { try StoredMessage($0) }
  }

  func insert(
    _ id: Identifier, of owner: Identifier, _ content: CheckedContent, as status: VaultV1.MessageStatus,
    sealed body: [UInt8]
  ) async throws -> StoredMessage {
    let due = ConditionColumns(content.condition)
    let rows = try await transaction.query(
      """
      INSERT INTO messages (
        message_id, owner_id, type, status, title, body, recipient_ids, group_ids, condition, due_date, due_minute,
        delay_count, delay_unit, revision)
      VALUES (
        \(id), \(owner), \(content.type.rawValue), \(status.rawValue), \(content.title), \(body),
        \(content.recipients.map(\.id)), \(content.groups.map(\.id)), \(due.kind), \(due.date), \(due.minute),
        \(due.count), \(due.unit), 1)
      RETURNING \(StoredMessage.columns)
      """)
    return try StoredMessage(rows[0])
  }

  /// Replaces all that an author may change. The row must exist.
  func update(
    _ id: Identifier, _ content: CheckedContent, as status: VaultV1.MessageStatus, sealed body: [UInt8]
  ) async throws -> StoredMessage {
    let due = ConditionColumns(content.condition)
    let rows = try await transaction.query(
      """
      UPDATE messages SET
        status = \(status.rawValue), title = \(content.title), body = \(body),
        recipient_ids = \(content.recipients.map(\.id)), group_ids = \(content.groups.map(\.id)),
        condition = \(due.kind), due_date = \(due.date), due_minute = \(due.minute), delay_count = \(due.count),
        delay_unit = \(due.unit), revision = revision + 1, update_time = now()
      WHERE message_id = \(id)
      RETURNING \(StoredMessage.columns)
      """)
    return try StoredMessage(rows[0])
  }

  func delete(_ id: Identifier) async throws {
    try await transaction.execute("DELETE FROM messages WHERE message_id = \(id)")
  }

  // MARK: A member leaves the audience

  /// The owner's ready messages that go to this one member and to nobody else.
  func readyOnly(for member: AudienceMember, of owner: Identifier) async throws -> [Identifier] {
    let rows = try await transaction.query(
      """
      SELECT message_id FROM messages
      WHERE owner_id = \(owner) AND status = \(VaultV1.MessageStatus.ready.rawValue) AND \(member.isNamed)
        AND cardinality(recipient_ids) + cardinality(group_ids) = 1
      """)
    return try rows.map { try $0.decode(Identifier.self, at: 0) }
  }

  func body(of id: Identifier) async throws -> [UInt8] {
    try await transaction.query("SELECT body FROM messages WHERE message_id = \(id)")[0].decode([UInt8].self, at: 0)
  }

  func makeDraft(_ id: Identifier, sealed body: [UInt8]) async throws {
    try await transaction.execute(
      """
      UPDATE messages SET status = \(VaultV1.MessageStatus.draft.rawValue), body = \(body) WHERE message_id = \(id)
      """)
  }

  /// Takes the member out of all of the owner's messages; each counts as saved.
  func remove(_ member: AudienceMember, of owner: Identifier) async throws {
    try await transaction.execute(
      """
      UPDATE messages SET \(member.removal), revision = revision + 1, update_time = now()
      WHERE owner_id = \(owner) AND \(member.isNamed)
      """)
  }
}

/// Someone whom a message may go to.
enum AudienceMember: Sendable {
  case recipient(Identifier)
  case group(Identifier)

  fileprivate var isNamed: Query {
    switch self {
    case .recipient(let id): "\(id) = ANY (recipient_ids)"
    case .group(let id): "\(id) = ANY (group_ids)"
    }
  }

  fileprivate var removal: Query {
    switch self {
    case .recipient(let id): "recipient_ids = array_remove(recipient_ids, \(id))"
    case .group(let id): "group_ids = array_remove(group_ids, \(id))"
    }
  }
}

/// Reads of messages that are a single statement each.
struct MessageReader {
  let database: Database

  init(_ database: Database) {
    self.database = database
  }

  /// The owner's message with its sealed body; nil when there is none.
  func read(
    _ id: Identifier, of owner: Identifier
  ) async throws -> (message: StoredMessage, body: [UInt8])? {
    let rows = try await database.query(
      """
      SELECT \(StoredMessage.columns), body FROM messages WHERE message_id = \(id) AND owner_id = \(owner)
      """)
    return try rows.first.map { (try StoredMessage($0), try $0.decode([UInt8].self, at: $0.columnCount - 1)) }
  }

  /// The owner's messages that fit, newest first, after `cursor`.
  func list(
    of owner: Identifier, _ filter: MessageFilter, after cursor: TimeCursor?, limit: Int
  ) async throws -> [StoredMessage] {
    let after: Query = cursor.map { " AND (create_time, message_id) < (\($0.time), \($0.id))" } ?? ""
    let rows = try await database.query(
      """
      SELECT \(StoredMessage.columns) FROM messages
      WHERE owner_id = \(owner)\(filter.conditions)\(after)
      ORDER BY create_time DESC, message_id DESC LIMIT \(limit)
      """)
    return try rows.map { try StoredMessage($0) }
  }

  /// All, drafts, ready ones.
  func summary(of owner: Identifier) async throws -> (total: Int64, drafts: Int64, ready: Int64) {
    let rows = try await database.query(
      """
      SELECT count(*), count(*) FILTER (WHERE status = 1), count(*) FILTER (WHERE status = 2)
      FROM messages WHERE owner_id = \(owner)
      """)
    return try rows[0].decode((Int64, Int64, Int64).self)
  }

  /// Whether a local time in a zone, 09:00 without a minute, is still to come.
  func isInFuture(_ date: CivilDate, minute: Int32?, zone: String) async throws -> Bool {
    let rows = try await database.query(
      """
      SELECT (\(date)::timestamp + make_interval(mins => \(minute ?? 540))) AT TIME ZONE \(zone) > now()
      """)
    return try rows[0].decode(Bool.self, at: 0)
  }
}

/// Which messages a list shows; nil and "" leave a condition out.
struct MessageFilter: Sendable {
  var status: Int32?
  var type: Int32?
  var recipient: Identifier?
  var search = ""

  /// Compares the search as text, never as a pattern, without regard to case in any script.
  var conditions: Query {
    let status: Query = status.map { " AND status = \($0)" } ?? ""
    let type: Query = type.map { " AND type = \($0)" } ?? ""
    let recipient: Query = recipient.map { " AND \($0) = ANY (recipient_ids)" } ?? ""
    let search: Query =
      search.isEmpty
      ? ""
      : #" AND position(lower(\#(search) COLLATE "und-x-icu") IN lower(title COLLATE "und-x-icu")) > 0"#
    return "\(status)\(type)\(recipient)\(search)"
  }
}
