package import API
package import Postgres
internal import Primitives
package import RPC

/// Serves a service's log to the services that subscribe to it.
package struct EventLog: EventsV1.EventService {
  private let outbox: Outbox
  private let database: Database
  private let published = Signal()
  private let closed = Signal()
  private let pageSize = 200

  /// `schema` names the NOTIFY channel, on which `publish` rings.
  package init(database: Database, schema: String) {
    self.database = database
    outbox = Outbox(database: database)
    let published = published
    _ = database.listen("\(schema)_outbox") { _ in published.ring() }
  }

  /// Ends every subscription, and each that comes later, with UNAVAILABLE: a service that stops is not held up by its
  /// readers.
  package func close() {
    closed.ring()
    published.ring()
  }

  package func subscribe(
    _ request: EventsV1.SubscribeRequest, _ responses: ResponseWriter<EventsV1.SubscribeResponse>,
    _ context: CallContext
  ) async throws {
    guard request.afterPosition >= 0 else {
      throw ServiceError.invalid("after_position", "must not be negative")
    }
    var position = request.afterPosition
    while !Task.isCancelled {
      let seen = published.count
      guard closed.count == 0 else { throw ServiceError.unavailable("The service is stopping; subscribe again.") }
      let events = try await outbox.read(after: position, limit: pageSize)
      for event in events {
        try await responses.write(EventsV1.SubscribeResponse(event: EventsV1.Event(event)))
        position = event.position
      }
      if events.isEmpty { await published.wait(after: seen, timeout: .seconds(5)) }
    }
    throw CancellationError()
  }
}

extension EventsV1.Event {
  init(_ event: StoredEvent) {
    self.init(
      position: event.position, id: "\(event.id)", type: event.type, subjectID: "\(event.subject)",
      createTime: GoogleProtobuf.Timestamp(event.time), payload: event.payload, traceparent: event.traceparent)
  }
}
