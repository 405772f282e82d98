internal import API
internal import Postgres
internal import Primitives
internal import ServiceKit

/// How far deliveries have come, as the administrator may know it.
enum StatusStore {
  /// Whether the schedule of an account is complete; nil unless this administrator confirmed the passing.
  static func state(
    _ account: Identifier, administrator: Identifier, in database: Database
  ) async throws -> (scheduled: Bool, confirmTime: Instant)? {
    let rows = try await database.query(
      """
      SELECT schedule_time IS NOT NULL, confirm_time FROM accounts
      WHERE account_id = \(account) AND administrator_id = \(administrator)
      """)
    return try rows.first.map { row in
      let (scheduled, time) = try row.decode((Bool, Instant).self)
      return (scheduled, time)
    }
  }

  static func page(
    _ account: Identifier, after: TimeCursor?, limit: Int, in database: Database
  ) async throws -> [DeliveryV1.Delivery] {
    let start =
      after ?? TimeCursor(time: Instant(microseconds: -62_135_596_800_000_000), id: Identifier(high: 0, low: 0))
    let rows = try await database.query(
      """
      SELECT delivery_id, message_type, status, due_time, send_time, view_time, acknowledge_time, late
      FROM deliveries
      WHERE account_id = \(account) AND (due_time, delivery_id) > (\(start.time), \(start.id))
      ORDER BY due_time, delivery_id LIMIT \(limit)
      """)
    return try rows.map { row in
      let (id, type, status, due, send, view, acknowledge, late) = try row.decode(
        (Identifier, String, String, Instant, Instant?, Instant?, Instant?, Bool).self)
      return DeliveryV1.Delivery(
        deliveryID: "\(id)", type: .init(stored: type), status: .init(stored: status), dueTime: .init(due),
        sendTime: send.map { .init($0) }, viewTime: view.map { .init($0) },
        acknowledgeTime: acknowledge.map { .init($0) }, late: late)
    }
  }

  static func counts(_ account: Identifier, in database: Database) async throws -> [DeliveryV1.StatusCount] {
    let rows = try await database.query(
      """
      SELECT status, count(*)::integer FROM deliveries WHERE account_id = \(account) GROUP BY status ORDER BY status
      """)
    return try rows.map { row in
      let (status, count) = try row.decode((String, Int32).self)
      return DeliveryV1.StatusCount(status: .init(stored: status), count: count)
    }
  }
}

extension DeliveryV1.DeliveryStatus {
  init(stored: String) {
    switch stored {
    case "pending": self = .pending
    case "sent": self = .sent
    case "viewed": self = .viewed
    case "suppressed": self = .suppressed
    default: self = .unspecified
    }
  }
}
