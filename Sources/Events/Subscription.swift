package import API
package import Postgres
internal import Primitives
package import Protobuf
package import RPC

/// One service's reading of another's log: each event's effect and the new cursor are committed together, so every
/// event has its effect exactly once, whatever is killed in between. Two instances may read at once; the cursor, moved
/// by compare-and-set, lets only one of them commit.
package struct Subscription: Sendable {
  /// What an event does, inside the transaction that also moves the cursor.
  package typealias Effect = @Sendable (EventsV1.Event, Transaction) async throws -> Void

  /// The publisher's name, such as `identity`.
  package let publisher: String
  private let client: EventsV1.EventServiceClient
  private let database: Database
  private var effects: [String: Effect] = [:]

  package init(publisher: String, channel: Channel, database: Database) {
    self.publisher = publisher
    client = EventsV1.EventServiceClient(channel)
    self.database = database
  }

  /// Adds the effect of one type of event. Types without one move the cursor and do nothing else.
  package mutating func on<Payload: Message>(
    _ type: Payload.Type, _ effect: @escaping @Sendable (Payload, Transaction) async throws -> Void
  ) {
    effects[Payload.fullName] = { event, transaction in
      try await effect(try Payload(serialized: event.payload), transaction)
    }
  }

  /// Reads until the task is cancelled. A publisher that is down, or an effect that fails, is tried again with growing
  /// waits; nothing is passed over.
  package func run() async {
    var backoff = Backoff()
    while !Task.isCancelled {
      do {
        let position = try await position()
        let stream = try await client.subscribe(
          EventsV1.SubscribeRequest(afterPosition: position), CallOptions(waitForReady: true))
        var expected = position
        for try await response in stream {
          guard let event = response.event else { continue }
          guard event.position > expected else { continue }
          guard event.position == expected + 1 else { throw EventsMissing(after: expected, next: event.position) }
          try await apply(event, after: expected)
          expected = event.position
          backoff.reset()
        }
      } catch {
        if Task.isCancelled { return }
        report(error)
      }
      await pause(backoff.next())
    }
  }

  /// Applies one event: its effect and the cursor in one transaction. Throws `CursorMoved` when another instance was
  /// faster.
  package func apply(_ event: EventsV1.Event, after position: Int64) async throws {
    try await database.transaction { transaction in
      let moved = try await transaction.execute(
        """
        UPDATE event_cursors SET position = \(event.position), move_time = now()
        WHERE publisher = \(publisher) AND position = \(position)
        """)
      guard moved == 1 else { throw CursorMoved() }
      guard let effect = effects[event.type] else { return }
      // What the effect publishes and calls goes on with the event's trace.
      try await TraceContext.$current.withValue(TraceContext(continuing: event.traceparent)) {
        try await effect(event, transaction)
      }
    }
  }

  /// The position of the last event whose effect is committed; 0 at first.
  package func position() async throws -> Int64 {
    _ = try await database.execute(
      "INSERT INTO event_cursors (publisher, position) VALUES (\(publisher), 0) ON CONFLICT DO NOTHING")
    let rows = try await database.query("SELECT position FROM event_cursors WHERE publisher = \(publisher)")
    guard let row = rows.first else { return 0 }
    return try row.decode(Int64.self, at: 0)
  }

  private func report(_ error: any Error) {
    if error is CursorMoved {
      Log.info("subscription cursor moved elsewhere", ["publisher": .text(publisher)])
    } else if let error = error as? ServiceError, error.code == .unavailable {
      Log.debug("publisher unavailable", ["publisher": .text(publisher)])
    } else {
      Log.error("event not applied", ["publisher": .text(publisher), "error": .text("\(error)")])
    }
  }
}

/// The log has a gap: positions are given without any, so events were lost, and nothing may be passed over.
package struct EventsMissing: Error {
  package let after: Int64
  package let next: Int64
}

/// Another instance has applied the event.
package struct CursorMoved: Error {}
