import API
import EventLoop
import Postgres
import Primitives
import RPC
import ServiceKit
import TestKit
import Testing

@testable import delivery

@Suite struct SchedulerTests {
  @Test("delivery lists every migration file, and serves what its access table names")
  func setUp() {
    #expect(Migrations.all.map(\.name) == migrationFiles(of: "delivery"))
    #expect(Set(DeliveryService.access.keys) == Set(DeliveryService.descriptor.methods))
    #expect(DeliveryService.access[DeliveryFixture.Calls.listDeliveries] == .owner)
  }

  @Test("DE-1 without a confirmation there is nothing to take up")
  func unconfirmed() async throws {
    try await DeliveryFixture.with { fixture async throws in
      fixture.message(to: fixture.recipients("anna"))
      #expect(await fixture.scheduler.takeUpAll())
      #expect(try await fixture.dispatcher.dispatch() == 0)
      #expect(try await fixture.count("deliveries") == 0)
    }
  }

  @Test("DE-2 every ready message is taken up, over all pages, for each recipient once")
  func takenUp() async throws {
    try await DeliveryFixture.with { fixture async throws in
      let people = fixture.recipients("anna", "bert", "cora")
      let family = Identifier()
      fixture.standIns.set { state in
        state.groups = [.init(groupID: "\(family)", recipientIDs: people.prefix(2).map { "\($0)" })]
        state.pageSize = 2
      }
      fixture.message(to: [people[0]], groups: [family])
      fixture.message(to: [people[2]], type: .note)
      fixture.message(to: people)
      try await fixture.confirm()
      #expect(try await !fixture.list().scheduled)
      #expect(await fixture.scheduler.takeUpAll())
      #expect(try await fixture.count("deliveries") == 2 + 1 + 3)
      #expect(try await fixture.list().scheduled)
      #expect(try await fixture.count("deliveries WHERE message_type = 'note'") == 1)
      #expect(await fixture.scheduler.takeUpAll())
      #expect(try await fixture.count("deliveries") == 6)
    }
  }

  @Test("DE-2 taken up by several instances at once, the schedule is written once")
  func parallel() async throws {
    try await DeliveryFixture.with { fixture async throws in
      let people = fixture.recipients("anna", "bert")
      for _ in 0..<5 { fixture.message(to: people) }
      try await fixture.confirm()
      let release = try await fixture.release()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<6 { group.addTask { try await fixture.scheduler.takeUp(release) } }
        try await group.waitForAll()
      }
      #expect(try await fixture.count("deliveries") == 10)
      #expect(try await fixture.count("recipients") == 2)
    }
  }

  @Test("DE-2 a confirmation that is told again changes nothing")
  func repeatedEvent() async throws {
    try await DeliveryFixture.with { fixture async throws in
      fixture.message(to: fixture.recipients("anna"))
      let event = fixture.confirmed()
      try await fixture.confirm(event)
      #expect(await fixture.scheduler.takeUpAll())
      let before = try await fixture.texts("SELECT accounts::text FROM accounts")
      try await fixture.confirm(event)
      #expect(try await fixture.texts("SELECT accounts::text FROM accounts") == before)
      #expect(await fixture.scheduler.takeUpAll())
      #expect(try await fixture.count("deliveries") == 1)
    }
  }

  @Test("DE-1 an event without a statement, or with that of another account, adds nothing")
  func wrongStatement() async throws {
    try await DeliveryFixture.with { fixture async throws in
      var bare = fixture.confirmed()
      bare.statement = nil
      for event in [bare, fixture.confirmed(statementAccount: Identifier())] {
        #expect(try await refusal { try await fixture.confirm(event) }.code == .invalidArgument)
      }
      #expect(try await fixture.count("accounts") == 0)
    }
  }

  @Test(
    "DE-2 while a neighbour is away nothing is written, and everything once it is back",
    arguments: ["batchGetAccounts", "freezeAudience", "listReady", "listReady next"])
  func neighbourAway(_ method: String) async throws {
    try await DeliveryFixture.with { fixture async throws in
      let people = fixture.recipients("anna")
      fixture.standIns.set { state in
        state.pageSize = 1
        state.failures[method] = .unavailable("away")
      }
      for _ in 0..<2 { fixture.message(to: people) }
      try await fixture.confirm()
      #expect(await !fixture.scheduler.takeUpAll())
      #expect(try await fixture.count("deliveries") == 0)
      #expect(try await fixture.count("recipients") == 0)
      #expect(try await !fixture.list().scheduled)
      fixture.standIns.set { $0.failures = [:] }
      #expect(await fixture.scheduler.takeUpAll())
      #expect(try await fixture.count("deliveries") == 2)
    }
  }

  @Test("DE-2 a person whose messages cannot be taken up does not hold up the others")
  func othersGoOn() async throws {
    try await DeliveryFixture.with { fixture async throws in
      let lost = Identifier()
      fixture.standIns.set { $0.unknown = [lost] }
      fixture.message(to: fixture.recipients("anna"))
      try await fixture.confirm(fixture.confirmed(lost, time: Instant(seconds: 1)))
      try await fixture.confirm()
      #expect(await !fixture.scheduler.takeUpAll())
      #expect(try await fixture.list().scheduled)
      #expect(try await !fixture.list(lost).scheduled)
    }
  }

  @Test("DE-2 a message whose condition cannot be read is not guessed at: nothing of that person is written")
  func unreadable() async throws {
    try await DeliveryFixture.with { fixture async throws in
      let people = fixture.recipients("anna")
      fixture.message(to: people)
      fixture.message(to: people, nil)
      try await fixture.confirm()
      #expect(await !fixture.scheduler.takeUpAll())
      #expect(try await fixture.count("deliveries") == 0)
    }
  }

  @Test("OP-31 who declined gets nothing, and the delivery is recorded as suppressed")
  func declined() async throws {
    try await DeliveryFixture.with { fixture async throws in
      let people = fixture.recipients("anna", "bert", declined: ["bert"])
      fixture.message(to: people)
      try await fixture.deliver()
      #expect(fixture.standIns.state.sends.map(\.addressee?.name) == ["anna"])
      #expect(try await fixture.texts("SELECT status FROM deliveries ORDER BY status") == ["pending", "suppressed"])
      #expect(try await fixture.count("links") == 1)
    }
  }

  @Test("DE-3 with everything running, a confirmation becomes mails by itself")
  func workers() async throws {
    try await DeliveryFixture.with { fixture async throws in
      fixture.message(to: fixture.recipients("anna", "bert"))
      let loop = fixture.runtime.group.next()
      let workers = [
        Task(executorPreference: loop) { await fixture.scheduler.run() },
        Task(executorPreference: loop) { await fixture.dispatcher.run() },
        Task(executorPreference: loop) { await fixture.courier.run() },
      ]
      try await fixture.confirm()
      try await eventually("two mails") {
        _ = try await fixture.count("deliveries")
        return fixture.standIns.state.sends.count == 2
      }
      for worker in workers { worker.cancel() }
      for worker in workers { await worker.value }
      #expect(Set(fixture.standIns.state.sends.map(\.requestID)).count == 2)
    }
  }
}
