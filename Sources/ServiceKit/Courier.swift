package import API
internal import Events
package import Postgres
internal import Primitives
internal import Protobuf
package import RPC
internal import Sealing

/// Hands notifications over to the notifications service. A notification is queued in the transaction of the change
/// that causes it and leaves the queue only when it was taken over; its id makes a repeat harmless.
package struct Courier: Sendable {
  private let database: Database
  private let dataKeys: DataKeys
  private let client: NotificationsV1.SendServiceClient
  private let queued = Signal()
  private let batchSize = 64

  package init(database: Database, dataKeys: DataKeys, notifications: Channel, schema: String) {
    self.database = database
    self.dataKeys = dataKeys
    client = NotificationsV1.SendServiceClient(notifications)
    let queued = queued
    _ = database.listen("\(schema)_send_queue") { _ in queued.ring() }
  }

  /// Queues a notification; `request.requestID` names it for good.
  package func enqueue(_ request: NotificationsV1.SendRequest, in transaction: Transaction) async throws {
    try await enqueue([request], in: transaction)
  }

  /// Queues many with one statement.
  package func enqueue(_ requests: [NotificationsV1.SendRequest], in transaction: Transaction) async throws {
    if requests.isEmpty { return }
    let key = try await dataKeys.key(for: DataKeys.serviceOwner, in: transaction)
    var ids: [Identifier] = []
    var sealed: [[UInt8]] = []
    for request in requests {
      let id = try Fields.identifier(request.requestID, "request_id")
      ids.append(id)
      sealed.append(try key.seal(request.serialized(), Courier.binding(id)))
    }
    _ = try await transaction.query(
      """
      WITH added AS (
        INSERT INTO send_queue (send_id, sealed) SELECT send_id, sealed FROM unnest(\(ids), \(sealed)) AS new (send_id, sealed)
        ON CONFLICT DO NOTHING RETURNING send_id)
      SELECT pg_notify(current_schema() || '_send_queue', '')::text FROM added LIMIT 1
      """)
  }

  /// Works the queue off until the task is cancelled.
  package func run() async {
    while !Task.isCancelled {
      let seen = queued.count
      var handedOver = 0
      do {
        handedOver = try await handOver()
      } catch {
        if Task.isCancelled { return }
        Log.warning("send queue not read", ["error": .text("\(error)")])
      }
      if handedOver == 0 { await queued.wait(after: seen, timeout: .seconds(1)) }
    }
  }

  /// Hands over what is due, at most one batch; returns how many were taken over.
  package func handOver() async throws -> Int {
    let rows = try await database.query(
      """
      SELECT send_id, sealed, attempts FROM send_queue
      WHERE refused IS NULL AND next_attempt_time <= now() ORDER BY next_attempt_time LIMIT \(batchSize)
      """)
    if rows.isEmpty { return 0 }
    return try await withThrowingTaskGroup(of: Bool.self) { group in
      for row in rows {
        let (id, sealed, attempts) = try row.decode((Identifier, [UInt8], Int32).self)
        group.addTask {
          do {
            return try await handOver(id, sealed, Int(attempts))
          } catch is CancellationError {
            throw CancellationError()
          } catch {
            // One that cannot be opened must not hold up the others.
            Log.error("notification not handed over", ["send_id": .text("\(id)"), "error": .text("\(error)")])
            return try await postpone(id, Int(attempts), .internal(cause: error))
          }
        }
      }
      var count = 0
      for try await taken in group where taken { count += 1 }
      return count
    }
  }

  private func handOver(_ id: Identifier, _ sealed: [UInt8], _ attempts: Int) async throws -> Bool {
    let key = try await dataKeys.serviceKey(in: database)
    let request = try NotificationsV1.SendRequest(serialized: try key.open(sealed, Courier.binding(id)))
    do {
      _ = try await client.send(request, CallOptions(timeout: .seconds(10)))
    } catch let error as ServiceError {
      return try await postpone(id, attempts, error)
    }
    _ = try await database.execute("DELETE FROM send_queue WHERE send_id = \(id)")
    return true
  }

  private func postpone(_ id: Identifier, _ attempts: Int, _ error: ServiceError) async throws -> Bool {
    if error.code == .invalidArgument {
      Log.error("notification refused", ["send_id": .text("\(id)"), "reason": .text(error.reason)])
      _ = try await database.execute("UPDATE send_queue SET refused = \(error.reason) WHERE send_id = \(id)")
      return false
    }
    let wait = min(0.2 * Double(1 << min(attempts, 10)), 30)
    _ = try await database.execute(
      """
      UPDATE send_queue SET attempts = attempts + 1, next_attempt_time = now() + make_interval(secs => \(wait))
      WHERE send_id = \(id)
      """)
    return false
  }

  private static func binding(_ id: Identifier) -> Binding {
    Binding(table: "send_queue", column: "sealed", row: id, owner: DataKeys.serviceOwner)
  }
}
