import API
import Postgres
import Primitives
import Protobuf
import RPC
import ServiceKit
import TestKit

@testable import delivery

/// A delivery service on a database of its own, with stand-ins for its neighbours.
struct DeliveryFixture: Sendable {
  typealias Calls = DeliveryV1.DeliveryServiceMethods

  let runtime: ServiceRuntime
  let standIns: StandIns
  let scheduler: Scheduler
  let courier: Courier
  let dispatcher: Dispatcher
  let service: DeliveryService
  let author = Identifier()
  let administrator = Identifier()

  var database: Database { runtime.database }

  static func with(_ body: (DeliveryFixture) async throws -> Void) async throws {
    let standIns = StandIns()
    try await TestRuntime.with(name: "delivery", migrations: Migrations.all, neighbours: standIns.neighbours) {
      try await body(try DeliveryFixture($0, standIns))
    }
  }

  private init(_ runtime: ServiceRuntime, _ standIns: StandIns) throws {
    self.runtime = runtime
    self.standIns = standIns
    let release = VaultV1.ReleaseServiceClient(try runtime.neighbours.channel(to: "vault"))
    scheduler = Scheduler(
      database: runtime.database, directory: .init(try runtime.neighbours.channel(to: "identity")),
      audience: .init(try runtime.neighbours.channel(to: "recipients")), release: release)
    courier = try runtime.courier()
    dispatcher = Dispatcher(
      database: runtime.database, courier: courier, publicURL: runtime.config.publicURL, wake: scheduler.scheduled)
    service = DeliveryService(database: runtime.database, pageTokens: runtime.pageTokens, release: release)
  }

  // MARK: Before

  /// Recipients with these names, known to the stand-in; returns their ids.
  @discardableResult
  func recipients(_ names: String..., declined: Set<String> = []) -> [Identifier] {
    let ids = names.map { _ in Identifier() }
    standIns.set { state in
      for (id, name) in zip(ids, names) {
        state.recipients.append(
          .init(
            recipientID: "\(id)", name: name, email: "\(name)@example.com",
            acceptance: declined.contains(name) ? .declined : .pending))
      }
    }
    return ids
  }

  /// A ready message in the stand-in's vault.
  @discardableResult
  func message(
    to recipients: [Identifier], groups: [Identifier] = [],
    _ condition: VaultV1.DeliveryCondition.Condition? = .immediate(.init()), type: VaultV1.MessageType = .letter
  ) -> Identifier {
    let id = Identifier()
    standIns.set { state in
      state.messages.append(
        .init(
          messageID: "\(id)", type: type, recipientIDs: recipients.map { "\($0)" }, groupIDs: groups.map { "\($0)" },
          deliveryCondition: condition.map { .init(condition: $0) }))
    }
    return id
  }

  // MARK: The confirmation

  func confirmed(
    _ account: Identifier? = nil, time: Instant? = nil, statementAccount: Identifier? = nil
  ) -> ConfirmationV1.PassingConfirmed {
    let account = account ?? author
    let confirmation = Identifier()
    let statement = ConfirmationV1.ConfirmationStatement(
      confirmationID: "\(confirmation)", accountID: "\(statementAccount ?? account)",
      confirmTime: .init(time ?? Instant.now().advanced(by: .seconds(-1))))
    return .init(
      accountID: "\(account)", confirmationID: "\(confirmation)", administratorID: "\(administrator)",
      statement: .init(statement: statement.serialized(), signature: [1], keyID: "k"))
  }

  func confirm(_ event: ConfirmationV1.PassingConfirmed? = nil) async throws {
    let event = event ?? confirmed()
    try await database.transaction { try await DeliveryEvents.passingConfirmed(event, in: $0) }
  }

  func release(_ account: Identifier? = nil) async throws -> Release {
    guard let release = try await AccountStore.release(account ?? author, in: database) else {
      throw ServiceError.notFound("release")
    }
    return release
  }

  /// Confirms, schedules and hands over what is due.
  func deliver() async throws {
    try await confirm()
    try await scheduler.takeUp(release())
    while try await dispatcher.dispatch() > 0 {}
    while try await courier.handOver() > 0 {}
  }

  /// The tokens of the mailed links, in the order in which they were sent.
  func tokens() -> [String] {
    standIns.state.sends.compactMap { request in
      guard case .messageNotice(let notice) = request.content else { return nil }
      return notice.link.split(separator: "/").last.map(String.init)
    }
  }

  // MARK: Calls

  func getLink(_ token: String) async throws -> DeliveryV1.GetLinkResponse {
    try await service.getLink(.init(token: token), .anonymous(Calls.getLink))
  }

  func openLink(_ token: String) async throws -> DeliveryV1.OpenLinkResponse {
    try await service.openLink(.init(token: token), .anonymous(Calls.openLink))
  }

  func acknowledge(_ token: String) async throws -> DeliveryV1.AcknowledgeResponse {
    try await service.acknowledge(.init(token: token), .anonymous(Calls.acknowledge))
  }

  func list(
    _ account: Identifier? = nil, by caller: Identifier? = nil, size: Int32 = 0, token: String = ""
  ) async throws -> DeliveryV1.ListDeliveriesResponse {
    try await service.listDeliveries(
      .init(accountID: "\(account ?? author)", pageSize: size, pageToken: token),
      .owner(caller ?? administrator, Calls.listDeliveries))
  }

  func notificationSent(_ id: String) async throws {
    try await database.transaction {
      try await DeliveryEvents.notificationSent(.init(notificationID: id, channel: 1), in: $0)
    }
  }

  // MARK: The database

  func count(_ rows: String) async throws -> Int {
    try await database.query("SELECT count(*) FROM \(unescaped: rows)")[0].decode(Int.self)
  }

  func texts(_ query: Query) async throws -> [String] {
    try await database.query(query).map { try $0.decode(String.self, at: 0) }
  }

  /// Everything in the schedule and its links, as text.
  func everything() async throws -> [String] {
    try await texts("SELECT deliveries::text FROM deliveries ORDER BY 1")
      + texts("SELECT links::text FROM links ORDER BY 1") + texts("SELECT type FROM outbox ORDER BY sequence")
  }

  /// The recorded events' types without their package, in order.
  func events() async throws -> [String] {
    try await texts("SELECT type FROM outbox ORDER BY sequence").map { String($0.split(separator: ".").last ?? "") }
  }
}
