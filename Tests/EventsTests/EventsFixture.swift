import API
import EventLoop
import Events
import Postgres
import Primitives
import Protobuf
import RPC
import ServiceKit
import TestKit

/// A publisher and its subscriber on one database: the log, the cursors and a table that effects are noted in.
struct EventsFixture: Sendable {
  let runtime: ServiceRuntime
  var database: Database { runtime.database }
  var outbox: Outbox { Outbox(database: runtime.database) }

  static func with(_ body: (EventsFixture) async throws -> Void) async throws {
    let effects = Migration(
      "v0001_create_effects",
      Array("CREATE TABLE effects (sequence bigint GENERATED ALWAYS AS IDENTITY, name text NOT NULL)".utf8))
    try await TestRuntime.with(name: "publisher", migrations: [effects]) { try await body(EventsFixture(runtime: $0)) }
  }

  static func event(_ name: String) -> DeliveryV1.DeliverySent { .init(accountID: "", deliveryID: name) }

  func publish(_ names: String...) async throws {
    try await database.transaction { transaction in
      for name in names { try await transaction.publish(EventsFixture.event(name), subject: Identifier()) }
    }
  }

  /// The names of the events after a position, with their positions.
  func read(after position: Int64 = 0, limit: Int = 1000) async throws -> [Placed] {
    try await outbox.read(after: position, limit: limit).map { event in
      Placed(position: event.position, name: try DeliveryV1.DeliverySent(serialized: event.payload).deliveryID)
    }
  }

  /// The names in the order in which their effects were committed.
  func effects() async throws -> [String] {
    try await database.query("SELECT name FROM effects ORDER BY sequence").map { try $0.decode(String.self) }
  }

  /// A subscription whose effect notes the event's name, after `before` has been asked.
  func subscription(
    port: Int, before: @escaping @Sendable (String) throws -> Void = { _ in }
  ) -> (Subscription, Channel) {
    let channel = Channel(target: "127.0.0.1:\(port)", group: runtime.group)
    var subscription = Subscription(publisher: "publisher", channel: channel, database: database)
    subscription.on(DeliveryV1.DeliverySent.self) { event, transaction in
      _ = try await transaction.execute("INSERT INTO effects (name) VALUES (\(event.deliveryID))")
      try before(event.deliveryID)
    }
    return (subscription, channel)
  }

  /// A server of the log; port 0 means any.
  func serve(_ log: any Service, port: Int = 0) throws -> Server {
    let server = Server(
      configuration: ServerConfiguration(address: SocketAddress("127.0.0.1:\(port)")!), services: [log],
      group: runtime.group)
    try server.start()
    return server
  }

  /// Runs subscriptions on the loop while `body` runs.
  func running(_ subscriptions: [(Subscription, Channel)], _ body: () async throws -> Void) async throws {
    let tasks = subscriptions.map { subscription, _ in
      Task(executorPreference: runtime.group.next()) { await subscription.run() }
    }
    let result: Result<Void, any Error>
    do {
      result = .success(try await body())
    } catch {
      result = .failure(error)
    }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
    for (_, channel) in subscriptions { await channel.shutdown() }
    try result.get()
  }
}

/// An event's place and name.
struct Placed: Equatable, Sendable {
  let position: Int64
  let name: String
}

/// Says yes once.
final class Gate: Sendable {
  private let signal = Signal()

  func open() { signal.ring() }
  func wait() async { await signal.wait(after: 0, timeout: .seconds(60)) }
}
