internal import API
package import Postgres
package import Primitives
package import Protobuf
internal import RPC

extension Transaction {
  /// Records an event in the transaction of the change it tells of: both are committed, or neither is.
  /// `subject` is what the event is about, in the present contracts the account. `traceparent` is that of the call
  /// that made the change; without one the event belongs to the trace of the event whose effect publishes it.
  package func publish(_ event: some Message, subject: Identifier, traceparent: String? = nil) async throws {
    try await publish([event], subject: subject, traceparent: traceparent)
  }

  /// Records many events of one type about one subject, in order, with one statement.
  package func publish<Event: Message>(
    _ events: [Event], subject: Identifier, traceparent: String? = nil
  ) async throws {
    if events.isEmpty { return }
    let ids = events.map { _ in Identifier() }
    let traceparent = traceparent ?? TraceContext.current?.traceparent ?? ""
    let payloads = events.map { $0.serialized() }
    _ = try await query(
      """
      WITH added AS (
        INSERT INTO outbox (event_id, type, subject_id, payload, traceparent)
        SELECT event_id, \(Event.fullName), \(subject), payload, \(traceparent)
        FROM unnest(\(ids), \(payloads)) WITH ORDINALITY AS new (event_id, payload, place) ORDER BY place
        RETURNING sequence)
      SELECT pg_notify(current_schema() || '_outbox', '')::text FROM added LIMIT 1
      """)
  }
}

/// The log of one service, read in order of position. Rows get their position only here, once they are visible and
/// under the lock of one row, so that positions appear in order and without gaps whatever the order of the commits;
/// unlike a transaction id, a position also survives a restore into another cluster.
package struct Outbox: Sendable {
  private let database: Database

  package init(database: Database) {
    self.database = database
  }

  /// The events after a position, oldest first, at most `limit`.
  package func read(after position: Int64, limit: Int) async throws -> [StoredEvent] {
    _ = try await database.query("SELECT place_events()")
    let rows = try await database.query(
      """
      SELECT position, event_id, type, subject_id, create_time, payload, traceparent
      FROM outbox WHERE position > \(position) ORDER BY position LIMIT \(limit)
      """)
    return try rows.map { row in
      let (position, id, type, subject, time, payload, traceparent) = try row.decode(
        (Int64, Identifier, String, Identifier, Instant, [UInt8], String).self)
      return StoredEvent(
        position: position, id: id, type: type, subject: subject, time: time, payload: payload,
        traceparent: traceparent)
    }
  }
}

/// One row of the log.
package struct StoredEvent: Sendable, Equatable {
  package let position: Int64
  package let id: Identifier
  /// The full name of the payload's message.
  package let type: String
  package let subject: Identifier
  package let time: Instant
  package let payload: [UInt8]
  package let traceparent: String
}
