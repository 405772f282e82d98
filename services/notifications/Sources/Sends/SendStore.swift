internal import Postgres
internal import Primitives

/// Notifications and their sends.
struct SendStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// False when the id is taken.
  func add(_ id: Identifier, kind: String, digest: [UInt8], sealed: [UInt8]) async throws -> Bool {
    try await transaction.execute(
      """
      INSERT INTO notifications (notification_id, kind, digest, sealed)
      VALUES (\(id), \(kind), \(digest), \(sealed)) ON CONFLICT (notification_id) DO NOTHING
      """) == 1
  }

  /// Whether the stored notification came from the same request.
  func holds(_ id: Identifier, digest: [UInt8]) async throws -> Bool {
    let rows = try await transaction.query("SELECT digest FROM notifications WHERE notification_id = \(id)")
    return try rows.first?.decode([UInt8].self, at: 0) == digest
  }

  func addSend(_ id: Identifier, _ channel: SendChannel, _ template: Template) async throws {
    _ = try await transaction.execute(
      "INSERT INTO sends (notification_id, channel) VALUES (\(id), \(channel.rawValue))")
    try await log(id, kind: template.kind, logType: template.logType, channel, "queued")
  }

  /// Takes due sends of a channel for `leaseSeconds`; another instance's are passed over.
  func claimDue(_ channel: SendChannel, limit: Int) async throws -> [DueSend] {
    let rows = try await transaction.query(
      """
      WITH due AS (
        SELECT notification_id, channel FROM sends
        WHERE status = 'pending' AND channel = \(channel.rawValue) AND next_attempt_time <= now()
          AND lease_time < now()
        ORDER BY next_attempt_time LIMIT \(limit) FOR UPDATE SKIP LOCKED)
      UPDATE sends SET attempts = sends.attempts + 1,
        lease_time = now() + make_interval(secs => \(SendRules.leaseSeconds))
      FROM due, notifications
      WHERE sends.notification_id = due.notification_id AND sends.channel = due.channel
        AND notifications.notification_id = due.notification_id
      RETURNING sends.notification_id, sends.attempts, notifications.sealed, notifications.create_time,
        notifications.create_time < now() - make_interval(secs => \(SendRules.patienceSeconds))
      """)
    return try rows.map { row in
      let (id, attempts, sealed, time, isLast) = try row.decode((Identifier, Int32, [UInt8]?, Instant, Bool).self)
      return DueSend(
        id: id, channel: channel, attempts: Int(attempts), sealed: sealed ?? [], createTime: time, isLast: isLast)
    }
  }

  /// Ends a send, once; the request is wiped when no channel needs it any more. False when it had ended before.
  func end(_ send: DueSend, _ status: String, _ template: Template, reason: String = "") async throws -> Bool {
    // One channel at a time: of two that end at once, each would take the other for pending and wipe nothing.
    _ = try await transaction.query(
      "SELECT FROM notifications WHERE notification_id = \(send.id) FOR UPDATE")
    let ended = try await transaction.execute(
      """
      UPDATE sends SET status = \(status), lease_time = '-infinity'
      WHERE notification_id = \(send.id) AND channel = \(send.channel.rawValue) AND status = 'pending'
      """)
    guard ended == 1 else { return false }
    _ = try await transaction.execute(
      """
      UPDATE notifications SET sealed = NULL
      WHERE notification_id = \(send.id)
        AND NOT EXISTS (SELECT FROM sends WHERE notification_id = \(send.id) AND status = 'pending')
      """)
    try await log(
      send.id, kind: template.kind, logType: template.logType, send.channel, status, reason: reason)
    return true
  }

  /// Puts a send off, unless someone else has taken it over since.
  func postpone(_ send: DueSend, _ template: Template, reason: String) async throws {
    let changed = try await transaction.execute(
      """
      UPDATE sends SET lease_time = '-infinity',
        next_attempt_time = now() + make_interval(secs => \(SendRules.delaySeconds(after: send.attempts)))
      WHERE notification_id = \(send.id) AND channel = \(send.channel.rawValue) AND status = 'pending'
        AND attempts = \(Int32(send.attempts))
      """)
    guard changed == 1 else { return }
    try await log(
      send.id, kind: template.kind, logType: template.logType, send.channel, "retried", reason: reason)
  }

  private func log(
    _ id: Identifier, kind: String, logType: String, _ channel: SendChannel, _ event: String, reason: String = ""
  ) async throws {
    _ = try await transaction.execute(
      """
      INSERT INTO notification_log (notification_id, kind, log_type, channel, event, reason)
      VALUES (\(id), \(kind), \(logType), \(channel.rawValue), \(event), \(reason))
      """)
  }
}

/// A send whose time has come.
struct DueSend: Sendable {
  let id: Identifier
  let channel: SendChannel
  let attempts: Int
  let sealed: [UInt8]
  let createTime: Instant
  /// Whether this try is the last one.
  let isLast: Bool
}
