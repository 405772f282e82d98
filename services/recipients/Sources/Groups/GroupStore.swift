internal import API
internal import Postgres
internal import Primitives

/// A group as stored.
struct Group: Sendable {
  let id: Identifier
  let name: String
  let members: [Identifier]
  let revision: Int64
  let createTime: Instant

  var wire: RecipientsV1.Group {
    RecipientsV1.Group(
      groupID: "\(id)", name: name, recipientIDs: members.map { "\($0)" }, revision: revision,
      createTime: .init(createTime))
  }
}

/// Groups and who is in them.
struct GroupStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// ALREADY_EXISTS (GROUP_NAME_TAKEN) when the account has that name already.
  func add(_ id: Identifier, name: String, nameKey: String, of account: Identifier) async throws {
    try await uniqueName {
      _ = try await transaction.execute(
        """
        INSERT INTO groups (group_id, account_id, name, name_key) VALUES (\(id), \(account), \(name), \(nameKey))
        """)
    }
  }

  /// ABORTED when the revision is another.
  func rename(
    _ id: Identifier, name: String, nameKey: String, revision: Int64, of account: Identifier
  ) async throws {
    let updated = try await uniqueName {
      try await transaction.execute(
        """
        UPDATE groups SET name = \(name), name_key = \(nameKey), revision = revision + 1
        WHERE group_id = \(id) AND account_id = \(account) AND revision = \(revision)
        """)
    }
    guard updated == 1 else {
      throw ServiceError(.aborted, "The group was changed meanwhile; read it again.", reason: "REVISION_MISMATCH")
    }
  }

  /// Sets the members. NOT_FOUND when one of them is not the account's.
  func set(_ members: [Identifier], of group: Identifier, account: Identifier) async throws {
    _ = try await transaction.execute("DELETE FROM members WHERE group_id = \(group)")
    let added = try await transaction.execute(
      """
      INSERT INTO members (group_id, recipient_id, account_id)
      SELECT \(group), recipient_id, account_id FROM recipients
      WHERE account_id = \(account) AND recipient_id = ANY(\(members))
      """)
    guard added == members.count else { throw ServiceError.notFound("recipient") }
  }

  /// NOT_FOUND when the group is not the account's.
  func join(_ recipient: Identifier, _ group: Identifier, of account: Identifier) async throws {
    let joined = try await transaction.execute(
      """
      WITH joined AS (
        UPDATE groups SET revision = revision + 1 WHERE group_id = \(group) AND account_id = \(account)
        RETURNING group_id)
      INSERT INTO members (group_id, recipient_id, account_id) SELECT group_id, \(recipient), \(account) FROM joined
      """)
    guard joined == 1 else { throw ServiceError.notFound("group") }
  }

  /// The groups that a recipient leaves have changed.
  func touch(having recipient: Identifier, of account: Identifier) async throws {
    _ = try await transaction.execute(
      """
      UPDATE groups SET revision = revision + 1
      WHERE account_id = \(account) AND group_id IN (SELECT group_id FROM members WHERE recipient_id = \(recipient))
      """)
  }

  /// False when there is none.
  func remove(_ id: Identifier, of account: Identifier) async throws -> Bool {
    try await transaction.execute("DELETE FROM groups WHERE group_id = \(id) AND account_id = \(account)") == 1
  }

  func count(of account: Identifier) async throws -> Int {
    let rows = try await transaction.query("SELECT count(*) FROM groups WHERE account_id = \(account)")
    return try rows.first?.decode(Int.self, at: 0) ?? 0
  }

  func find(_ id: Identifier, of account: Identifier) async throws -> Group? {
    try GroupStore.groups(await transaction.query(GroupStore.one(id, account))).first
  }

  static func find(_ id: Identifier, of account: Identifier, in database: Database) async throws -> Group? {
    try groups(await database.query(one(id, account))).first
  }

  static func all(of account: Identifier, in database: Database) async throws -> [Group] {
    try groups(
      await database.query(
        """
        SELECT group_id, name, revision, create_time,
          ARRAY(SELECT recipient_id FROM members m WHERE m.group_id = g.group_id ORDER BY recipient_id)
        FROM groups g WHERE account_id = \(account) ORDER BY name_key
        """))
  }

  private static func one(_ id: Identifier, _ account: Identifier) -> Query {
    """
    SELECT group_id, name, revision, create_time,
      ARRAY(SELECT recipient_id FROM members m WHERE m.group_id = g.group_id ORDER BY recipient_id)
    FROM groups g WHERE group_id = \(id) AND account_id = \(account)
    """
  }

  private static func groups(_ rows: [Row]) throws -> [Group] {
    try rows.map { row in
      let (id, name, revision, time, members) = try row.decode(
        (Identifier, String, Int64, Instant, [Identifier]).self)
      return Group(id: id, name: name, members: members, revision: revision, createTime: time)
    }
  }

  @discardableResult
  private func uniqueName<T>(_ body: () async throws -> T) async throws -> T {
    do {
      return try await body()
    } catch let error as PostgresError where error.isUniqueViolation("groups_name") {
      throw ServiceError(
        .alreadyExists, "You have a group of this name already.", reason: "GROUP_NAME_TAKEN",
        violations: [.init(field: "name", description: "is the name of another of your groups")])
    }
  }
}
