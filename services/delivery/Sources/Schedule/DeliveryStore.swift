internal import Postgres
internal import Primitives

/// The schedule.
struct DeliveryStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  func add(_ recipients: [ReleasedRecipient], of account: Identifier) async throws {
    _ = try await transaction.execute(
      """
      INSERT INTO recipients (account_id, recipient_id, name, email, declined)
      SELECT \(account), new.* FROM unnest(\(recipients.map(\.id)), \(recipients.map(\.name)),
        \(recipients.map(\.email)), \(recipients.map(\.declined))) AS new (recipient_id, name, email, declined)
      """)
  }

  /// One delivery for each recipient; those who declined are recorded as suppressed. Returns how many.
  func add(
    _ message: ReleasedMessage, of account: Identifier, confirmTime: Instant, timeZone: String
  ) async throws -> Int {
    let (due, late) = try await dueTime(message.condition, confirmTime: confirmTime, timeZone: timeZone)
    return try await transaction.execute(
      """
      INSERT INTO deliveries
        (delivery_id, account_id, message_id, recipient_id, message_type, due_time, late, status)
      SELECT new.delivery_id, \(account), \(message.id), recipients.recipient_id, \(message.type.rawValue), \(due),
        \(late), CASE WHEN recipients.declined THEN 'suppressed' ELSE 'pending' END
      FROM unnest(\(message.recipients.map { _ in Identifier() }), \(message.recipients))
        AS new (delivery_id, recipient_id)
      JOIN recipients ON recipients.account_id = \(account) AND recipients.recipient_id = new.recipient_id
      ON CONFLICT ON CONSTRAINT deliveries_once DO NOTHING
      """)
  }

  /// The instant at which a condition falls due, and whether it had passed at the confirmation. PostgreSQL computes it,
  /// with the zone data of the system; a missing day of a month becomes its last.
  func dueTime(
    _ condition: Condition, confirmTime: Instant, timeZone: String
  ) async throws -> (due: Instant, late: Bool) {
    let usual = ScheduleRules.usualTime
    let rows: [Row]
    switch condition {
    case .immediate: return (confirmTime, false)
    case .date(let date, let time):
      rows = try await transaction.query(
        "SELECT local_instant(\(date) + \(time ?? usual)::text::time, \(timeZone))")
    case .delay(let count, let unit):
      let interval = "\(count) \(unit)"
      rows = try await transaction.query(
        """
        SELECT local_instant(
          ((\(confirmTime) AT TIME ZONE \(timeZone))::date + \(interval)::text::interval)::date + \(usual)::text::time,
          \(timeZone))
        """)
    }
    guard let due = try rows.first?.decode(Instant.self, at: 0) else { throw ServiceError.notFound("instant") }
    return due < confirmTime ? (confirmTime, true) : (due, false)
  }

  /// Takes due deliveries for handing over, oldest first; another instance's are passed over.
  func claimDue(limit: Int) async throws -> [DueDelivery] {
    let rows = try await transaction.query(
      """
      SELECT deliveries.delivery_id, deliveries.account_id, recipients.recipient_id, recipients.name, recipients.email,
        accounts.sender_name
      FROM deliveries
      JOIN recipients ON recipients.account_id = deliveries.account_id
        AND recipients.recipient_id = deliveries.recipient_id
      JOIN accounts ON accounts.account_id = deliveries.account_id
      WHERE deliveries.status = 'pending' AND deliveries.hand_over_time IS NULL AND deliveries.due_time <= now()
        AND accounts.schedule_time IS NOT NULL
      ORDER BY deliveries.due_time LIMIT \(limit) FOR UPDATE OF deliveries SKIP LOCKED
      """)
    return try rows.map { row in
      let (id, account, recipient, name, email, sender) = try row.decode(
        (Identifier, Identifier, Identifier, String, String, String?).self)
      return DueDelivery(
        id: id, account: account, recipient: recipient, name: name, email: email, senderName: sender ?? "")
    }
  }

  /// Marks deliveries as handed over, with the hash of the link that each one's mail carries, good for 365 days.
  func handOver(_ deliveries: [DueDelivery], linkHashes: [[UInt8]]) async throws {
    let ids = deliveries.map(\.id)
    _ = try await transaction.execute(
      """
      INSERT INTO links (token_hash, delivery_id, expire_time)
      SELECT token_hash, delivery_id, now() + interval '365 days'
      FROM unnest(\(linkHashes), \(ids)) AS new (token_hash, delivery_id)
      """)
    _ = try await transaction.execute(
      """
      UPDATE deliveries SET hand_over_time = now(), late = late OR now() > due_time + interval '1 hour'
      WHERE delivery_id = ANY(\(ids))
      """)
  }

  /// Marks recipients as greeted and returns those who were not: each of them once ever, also when two instances hand
  /// over at the same time. Rows are locked in one order, so that they cannot block each other.
  func greet(_ deliveries: [DueDelivery]) async throws -> Set<Recipient> {
    let rows = try await transaction.query(
      """
      WITH named AS (
        SELECT recipients.account_id, recipients.recipient_id
        FROM recipients
        JOIN (SELECT DISTINCT * FROM unnest(\(deliveries.map(\.account)), \(deliveries.map(\.recipient))))
          AS new (account_id, recipient_id) USING (account_id, recipient_id)
        WHERE NOT recipients.greeted
        ORDER BY recipients.account_id, recipients.recipient_id FOR UPDATE OF recipients)
      UPDATE recipients SET greeted = true FROM named
      WHERE recipients.account_id = named.account_id AND recipients.recipient_id = named.recipient_id
      RETURNING recipients.account_id, recipients.recipient_id
      """)
    return Set(
      try rows.map { row in
        let (account, recipient) = try row.decode((Identifier, Identifier).self)
        return Recipient(account: account, id: recipient)
      })
  }

  /// Pending to sent; returns the author, or nil when it is not a pending delivery.
  func markSent(_ delivery: Identifier) async throws -> Identifier? {
    let rows = try await transaction.query(
      """
      UPDATE deliveries SET status = 'sent', send_time = now()
      WHERE delivery_id = \(delivery) AND status = 'pending' RETURNING account_id
      """)
    return try rows.first?.decode(Identifier.self, at: 0)
  }

  /// A failed mark; the status stays.
  func markFailed(_ delivery: Identifier) async throws {
    _ = try await transaction.execute(
      "UPDATE deliveries SET fail_time = now() WHERE delivery_id = \(delivery) AND status = 'pending'")
  }

  /// How long until the next delivery is due; nil when none waits.
  static func untilNextDue(in database: Database) async throws -> Duration? {
    let rows = try await database.query(
      """
      SELECT (extract(epoch FROM due_time - now()) * 1000)::bigint FROM deliveries
      WHERE status = 'pending' AND hand_over_time IS NULL ORDER BY due_time LIMIT 1
      """)
    return try rows.first.map { .milliseconds(max(0, try $0.decode(Int64.self, at: 0))) }
  }
}

/// A delivery whose time has come.
struct DueDelivery: Sendable {
  let id: Identifier
  let account: Identifier
  let recipient: Identifier
  let name: String
  let email: String
  let senderName: String
}

/// A recipient of one author.
struct Recipient: Sendable, Hashable {
  let account: Identifier
  let id: Identifier
}
