internal import API
internal import Postgres
internal import Primitives
internal import Sealing

/// An item of the secure folder as its row holds it, still sealed.
struct StoredItem: Sendable {
  let id: Identifier
  let section: VaultV1.FolderSection
  let title: [UInt8]
  let revision: Int64
  let updateTime: Instant

  /// The columns that `init` reads, in its order.
  static let columns: Query = "item_id, section, title, revision, update_time"

  /// Reads a row that begins with `columns`.
  init(_ row: Row) throws {
    id = try row.decode(Identifier.self, at: 0)
    section = VaultV1.FolderSection(rawValue: try row.decode(Int32.self, at: 1))
    title = try row.decode([UInt8].self, at: 2)
    revision = try row.decode(Int64.self, at: 3)
    updateTime = try row.decode(Instant.self, at: 4)
  }

  func proto(title: String, text: String = "") -> VaultV1.FolderItem {
    VaultV1.FolderItem(
      itemID: "\(id)", section: section, title: title, text: text, revision: revision, updateTime: .init(updateTime))
  }

  static func titleBinding(_ id: Identifier, _ owner: Identifier) -> Binding {
    Binding(table: "folder_items", column: "title", row: id, owner: owner)
  }

  static func textBinding(_ id: Identifier, _ owner: Identifier) -> Binding {
    Binding(table: "folder_items", column: "text", row: id, owner: owner)
  }
}

/// An item's sealed columns.
struct SealedItem: Sendable {
  let section: VaultV1.FolderSection
  let title: [UInt8]
  let text: [UInt8]

  init(_ item: CheckedItem, _ id: Identifier, of owner: Identifier, key: DataKey) throws {
    section = item.section
    title = try key.seal(Array(item.title.utf8), StoredItem.titleBinding(id, owner))
    text = try key.seal(Array(item.text.utf8), StoredItem.textBinding(id, owner))
  }
}

/// The rows of the secure folder, within one transaction.
struct FolderStore {
  let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  func count(of owner: Identifier) async throws -> Int {
    let rows = try await transaction.query("SELECT count(*) FROM folder_items WHERE owner_id = \(owner)")
    return try rows.first?.decode(Int.self, at: 0) ?? 0
  }

  /// The revision of the owner's item; nil when there is none.
  func revision(of id: Identifier, of owner: Identifier) async throws -> Int64? {
    let rows = try await transaction.query(
      "SELECT revision FROM folder_items WHERE item_id = \(id) AND owner_id = \(owner) FOR UPDATE")
    return try rows.first?.decode(Int64.self, at: 0)
  }

  func insert(_ id: Identifier, of owner: Identifier, _ item: SealedItem) async throws -> StoredItem {
    let rows = try await transaction.query(
      """
      INSERT INTO folder_items (item_id, owner_id, section, title, text, revision)
      VALUES (\(id), \(owner), \(item.section.rawValue), \(item.title), \(item.text), 1)
      RETURNING \(StoredItem.columns)
      """)
    return try StoredItem(rows[0])
  }

  /// Replaces what an author may change. The row must exist.
  func update(_ id: Identifier, _ item: SealedItem) async throws -> StoredItem {
    let rows = try await transaction.query(
      """
      UPDATE folder_items SET section = \(item.section.rawValue), title = \(item.title), text = \(item.text),
        revision = revision + 1, update_time = now()
      WHERE item_id = \(id)
      RETURNING \(StoredItem.columns)
      """)
    return try StoredItem(rows[0])
  }

  /// Whether there was one.
  func delete(_ id: Identifier, of owner: Identifier) async throws -> Bool {
    try await transaction.execute(
      "DELETE FROM folder_items WHERE item_id = \(id) AND owner_id = \(owner)") == 1
  }
}

/// Reads of the secure folder that are a single statement each.
struct FolderReader {
  let database: Database

  init(_ database: Database) {
    self.database = database
  }

  /// The owner's item with its sealed text; nil when there is none.
  func read(_ id: Identifier, of owner: Identifier) async throws -> (item: StoredItem, text: [UInt8])? {
    let rows = try await database.query(
      "SELECT \(StoredItem.columns), text FROM folder_items WHERE item_id = \(id) AND owner_id = \(owner)")
    return try rows.first.map { (try StoredItem($0), try $0.decode([UInt8].self, at: $0.columnCount - 1)) }
  }

  /// The owner's items, of one section or of all.
  func list(of owner: Identifier, _ section: VaultV1.FolderSection) async throws -> [StoredItem] {
    let rows = try await database.query(
      """
      SELECT \(StoredItem.columns) FROM folder_items
      WHERE owner_id = \(owner) AND (\(section.rawValue) = 0 OR section = \(section.rawValue))
      """)
    return try rows.map { try StoredItem($0) }
  }
}
