internal import Postgres
internal import Primitives

/// Designations.
struct DesignationStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// Serialises everything that concerns one person until the transaction ends.
  func lock(_ account: Identifier) async throws {
    _ = try await transaction.query(
      "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || \("\(account)"), 0))::text")
  }

  func add(_ designation: Designation) async throws {
    let designee = designation.designee
    _ = try await transaction.execute(
      """
      INSERT INTO designations
        (designation_id, account_id, role, recipient_id, name, email, email_key, phone)
      VALUES (\(designation.id), \(designation.account), \(designation.role.rawValue), \(designee.recipient),
        \(designee.name), \(designee.email), \(designee.emailKey), \(designee.phone))
      """)
  }

  /// The same person under another name, phone or spelling of the address.
  func update(_ designation: Identifier, _ designee: Designee) async throws {
    _ = try await transaction.execute(
      """
      UPDATE designations SET recipient_id = \(designee.recipient), name = \(designee.name),
        email = \(designee.email), phone = \(designee.phone)
      WHERE designation_id = \(designation) AND remove_time IS NULL
      """)
  }

  func remove(_ designation: Identifier) async throws {
    _ = try await transaction.execute(
      "UPDATE designations SET remove_time = now() WHERE designation_id = \(designation) AND remove_time IS NULL")
  }

  func current(of account: Identifier) async throws -> [Designation] {
    try DesignationStore.designations(await transaction.query(DesignationStore.currentQuery(account)))
  }

  static func current(of account: Identifier, in database: Database) async throws -> [Designation] {
    try designations(await database.query(currentQuery(account)))
  }

  /// A designation that is in force; nil otherwise.
  static func find(_ designation: Identifier, in database: Database) async throws -> Designation? {
    try designations(
      await database.query(
        """
        SELECT designation_id, account_id, role, recipient_id, name, email, phone, create_time FROM designations
        WHERE designation_id = \(designation) AND remove_time IS NULL
        """)
    ).first
  }

  /// Whether it is in force; asked under the lock.
  func isCurrent(_ designation: Designation) async throws -> Bool {
    try await current(of: designation.account).contains { $0.id == designation.id }
  }

  /// Every administrator designation of an address, newest first, with whether that person's passing is confirmed.
  static func verifications(
    of emailKey: String, in database: Database
  ) async throws -> [(designation: Designation, confirmed: Bool)] {
    let rows = try await database.query(
      """
      SELECT designation_id, d.account_id, role, recipient_id, name, email, phone, create_time,
        EXISTS (SELECT FROM confirmations c WHERE c.account_id = d.account_id)
      FROM designations d
      WHERE email_key = \(emailKey) AND role = 'administrator' AND remove_time IS NULL
      ORDER BY create_time DESC, designation_id LIMIT 1000
      """)
    return try rows.map { ($0, try $0.decode(Bool.self, at: 8)) }.map { row, confirmed in
      (try designation(row), confirmed)
    }
  }

  private static func currentQuery(_ account: Identifier) -> Query {
    """
    SELECT designation_id, account_id, role, recipient_id, name, email, phone, create_time FROM designations
    WHERE account_id = \(account) AND remove_time IS NULL ORDER BY role
    """
  }

  private static func designations(_ rows: [Row]) throws -> [Designation] { try rows.map { try designation($0) } }

  private static func designation(_ row: Row) throws -> Designation {
    guard let role = Role(rawValue: try row.decode(String.self, at: 2)) else { throw ServiceError.notFound("role") }
    return Designation(
      id: try row.decode(Identifier.self, at: 0), account: try row.decode(Identifier.self, at: 1), role: role,
      designee: Designee(
        recipient: try row.decode(Identifier?.self, at: 3), name: try row.decode(String.self, at: 4),
        email: try row.decode(String.self, at: 5), phone: try row.decode(String.self, at: 6)),
      createTime: try row.decode(Instant.self, at: 7))
  }
}
