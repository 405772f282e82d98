internal import API
internal import Postgres
internal import Primitives

/// A recipient as stored.
struct Recipient: Sendable {
  let id: Identifier
  let fields: RecipientFields
  let acceptance: Acceptance
  let promptTime: Instant?
  let groups: [Identifier]
  let revision: Int64
  let createTime: Instant

  var wire: RecipientsV1.Recipient {
    RecipientsV1.Recipient(
      recipientID: "\(id)", name: fields.name, email: fields.email, phone: fields.phone,
      relationship: fields.relationship.wire, acceptance: acceptance.wire, promptTime: promptTime.map { .init($0) },
      groupIDs: groups.map { "\($0)" }, revision: revision, createTime: .init(createTime))
  }
}

/// Recipients.
struct RecipientStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// ALREADY_EXISTS (EMAIL_TAKEN) when the account has that address already.
  func add(_ id: Identifier, _ fields: RecipientFields, of account: Identifier) async throws {
    try await uniqueEmail {
      _ = try await transaction.execute(
        """
        INSERT INTO recipients (recipient_id, account_id, name, email, email_key, phone, relationship)
        VALUES (\(id), \(account), \(fields.name), \(fields.email), \(fields.emailKey), \(fields.phone),
          \(fields.relationship.rawValue))
        """)
    }
  }

  /// Sets the fields; with a new address the answer goes back to pending. ABORTED when the revision is another.
  func update(
    _ id: Identifier, _ fields: RecipientFields, newAddress: Bool, revision: Int64, of account: Identifier
  ) async throws {
    let updated = try await uniqueEmail {
      try await transaction.execute(
        """
        UPDATE recipients SET name = \(fields.name), email = \(fields.email), email_key = \(fields.emailKey),
          phone = \(fields.phone), relationship = \(fields.relationship.rawValue), revision = revision + 1,
          acceptance = CASE WHEN \(newAddress) THEN 'pending' ELSE acceptance END,
          prompt_time = CASE WHEN \(newAddress) THEN NULL ELSE prompt_time END
        WHERE recipient_id = \(id) AND account_id = \(account) AND revision = \(revision)
        """)
    }
    guard updated == 1 else {
      throw ServiceError(
        .aborted, "The recipient was changed meanwhile; read it again.", reason: "REVISION_MISMATCH")
    }
  }

  /// False when there is none.
  func remove(_ id: Identifier, of account: Identifier) async throws -> Bool {
    try await transaction.execute(
      "DELETE FROM recipients WHERE recipient_id = \(id) AND account_id = \(account)") == 1
  }

  func count(of account: Identifier) async throws -> Int {
    let rows = try await transaction.query("SELECT count(*) FROM recipients WHERE account_id = \(account)")
    return try rows.first?.decode(Int.self, at: 0) ?? 0
  }

  func find(_ id: Identifier, of account: Identifier) async throws -> Recipient? {
    try RecipientStore.recipients(await transaction.query(RecipientStore.one(id, account))).first
  }

  static func find(_ id: Identifier, of account: Identifier, in database: Database) async throws -> Recipient? {
    try recipients(await database.query(one(id, account))).first
  }

  /// Those of the ids that are the account's; all of them without ids.
  static func all(of account: Identifier, among ids: [Identifier]?, in database: Database) async throws -> [Recipient] {
    try recipients(
      await database.query(
        """
        SELECT recipient_id, name, email, phone, relationship, acceptance, prompt_time, revision, create_time,
          ARRAY(SELECT group_id FROM members m WHERE m.recipient_id = r.recipient_id ORDER BY group_id)
        FROM recipients r
        WHERE account_id = \(account) AND (\(ids == nil) OR recipient_id = ANY(\(ids ?? [])))
        ORDER BY recipient_id
        """))
  }

  /// One page after a row, in the filter's order.
  static func page(
    of account: Identifier, _ filter: RecipientFilter, after: RecipientCursor?, limit: Int, in database: Database
  ) async throws -> [Recipient] {
    let place = filter.order.place
    let after: Query = after.map { " AND (\(place), recipient_id) > (\($0.key), \($0.name), \($0.id))" } ?? ""
    return try recipients(
      await database.query(
        """
        SELECT recipient_id, name, email, phone, relationship, acceptance, prompt_time, revision, create_time,
          ARRAY(SELECT group_id FROM members m WHERE m.recipient_id = r.recipient_id ORDER BY group_id)
        FROM recipients r WHERE account_id = \(account)\(filter.conditions)\(after)
        ORDER BY \(place), recipient_id LIMIT \(limit)
        """))
  }

  static func count(of account: Identifier, _ filter: RecipientFilter, in database: Database) async throws -> Int32 {
    let rows = try await database.query(
      "SELECT count(*)::integer FROM recipients WHERE account_id = \(account)\(filter.conditions)")
    return try rows.first?.decode(Int32.self, at: 0) ?? 0
  }

  private static func one(_ id: Identifier, _ account: Identifier) -> Query {
    """
    SELECT recipient_id, name, email, phone, relationship, acceptance, prompt_time, revision, create_time,
      ARRAY(SELECT group_id FROM members m WHERE m.recipient_id = r.recipient_id ORDER BY group_id)
    FROM recipients r WHERE recipient_id = \(id) AND account_id = \(account)
    """
  }

  private static func recipients(_ rows: [Row]) throws -> [Recipient] {
    try rows.map { row in
      let (id, name, email, phone, relationship, acceptance, promptTime, revision, createTime, groups) =
        try row.decode(
          (
            Identifier, String, String, String, Relationship, Acceptance, Instant?, Int64, Instant, [Identifier]
          ).self)
      return Recipient(
        id: id, fields: RecipientFields(name: name, email: email, phone: phone, relationship: relationship),
        acceptance: acceptance, promptTime: promptTime, groups: groups, revision: revision, createTime: createTime)
    }
  }

  @discardableResult
  private func uniqueEmail<T>(_ body: () async throws -> T) async throws -> T {
    do {
      return try await body()
    } catch let error as PostgresError where error.isUniqueViolation("recipients_email") {
      throw ServiceError(
        .alreadyExists, "You have a recipient with this address already.", reason: "EMAIL_TAKEN",
        violations: [.init(field: "email", description: "belongs to another of your recipients")])
    }
  }
}

extension Relationship: PostgresCodable {}
extension Acceptance: PostgresCodable {}
