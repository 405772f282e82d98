internal import API
internal import Events
internal import Postgres
internal import Primitives
internal import Sealing

/// What a link stands for.
struct LinkedDelivery: Sendable {
  let delivery: Identifier
  let account: Identifier
  let message: Identifier
  let type: String
  let dueTime: Instant
  let viewTime: Instant?
  let acknowledgeTime: Instant?
  let senderName: String
  let recipientName: String
  let statement: ConfirmationV1.SignedStatement
}

/// Secure links and what their holders do.
struct LinkStore {
  /// The delivery behind a link; nil when the link is unknown, revoked or past its time.
  static func find(_ token: LinkToken, in database: Database) async throws -> LinkedDelivery? {
    let rows = try await database.query(
      """
      SELECT d.delivery_id, d.account_id, d.message_id, d.message_type, d.due_time, d.view_time, d.acknowledge_time,
        a.sender_name, r.name, a.statement, a.signature, a.key_id
      FROM links l
      JOIN deliveries d ON d.delivery_id = l.delivery_id
      JOIN accounts a ON a.account_id = d.account_id
      JOIN recipients r ON r.account_id = d.account_id AND r.recipient_id = d.recipient_id
      WHERE l.token_hash = \(token.hash) AND l.expire_time > now() AND l.revoke_time IS NULL
        AND d.status <> 'suppressed'
      """)
    guard let row = rows.first else { return nil }
    return LinkedDelivery(
      delivery: try row.decode(Identifier.self, at: 0), account: try row.decode(Identifier.self, at: 1),
      message: try row.decode(Identifier.self, at: 2), type: try row.decode(String.self, at: 3),
      dueTime: try row.decode(Instant.self, at: 4), viewTime: try row.decode(Instant?.self, at: 5),
      acknowledgeTime: try row.decode(Instant?.self, at: 6), senderName: try row.decode(String?.self, at: 7) ?? "",
      recipientName: try row.decode(String.self, at: 8),
      statement: ConfirmationV1.SignedStatement(
        statement: try row.decode([UInt8].self, at: 9), signature: try row.decode([UInt8].self, at: 10),
        keyID: try row.decode(String.self, at: 11)))
  }

  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// Marks the first opening; what is opened has been sent, even if word of that is still on its way. Returns its time
  /// and the acknowledgment's, and publishes what was new.
  func view(_ linked: LinkedDelivery, traceparent: String?) async throws -> (Instant, acknowledgeTime: Instant?) {
    let (account, delivery) = (linked.account, linked.delivery)
    let sent = try await transaction.execute(
      """
      UPDATE deliveries SET status = 'sent', send_time = now() WHERE delivery_id = \(delivery) AND status = 'pending'
      """)
    if sent == 1 {
      try await transaction.publish(
        DeliveryV1.DeliverySent(accountID: "\(account)", deliveryID: "\(delivery)"), subject: account,
        traceparent: traceparent)
    }
    let viewed = try await transaction.execute(
      """
      UPDATE deliveries SET status = 'viewed', view_time = now()
      WHERE delivery_id = \(delivery) AND view_time IS NULL
      """)
    if viewed == 1 {
      try await transaction.publish(
        DeliveryV1.MessageViewed(accountID: "\(account)", deliveryID: "\(delivery)"), subject: account,
        traceparent: traceparent)
    }
    let rows = try await transaction.query(
      "SELECT view_time, acknowledge_time FROM deliveries WHERE delivery_id = \(delivery)")
    guard let row = rows.first else { throw ServiceError.notFound("link") }
    let (viewTime, acknowledgeTime) = try row.decode((Instant, Instant?).self)
    return (viewTime, acknowledgeTime)
  }

  /// Marks the first acknowledgment, which is a viewing too. Returns its time and publishes what was new.
  func acknowledge(_ linked: LinkedDelivery, traceparent: String?) async throws -> Instant {
    _ = try await view(linked, traceparent: traceparent)
    let (account, delivery) = (linked.account, linked.delivery)
    let changed = try await transaction.execute(
      """
      UPDATE deliveries SET acknowledge_time = now() WHERE delivery_id = \(delivery) AND acknowledge_time IS NULL
      """)
    if changed == 1 {
      try await transaction.publish(
        DeliveryV1.MessageAcknowledged(accountID: "\(account)", deliveryID: "\(delivery)"), subject: account,
        traceparent: traceparent)
    }
    let rows = try await transaction.query("SELECT acknowledge_time FROM deliveries WHERE delivery_id = \(delivery)")
    guard let row = rows.first else { throw ServiceError.notFound("link") }
    return try row.decode(Instant.self, at: 0)
  }
}
