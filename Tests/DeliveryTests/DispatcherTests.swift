import API
import Postgres
import Primitives
import ServiceKit
import TestKit
import Testing

@testable import delivery

@Suite struct DispatcherTests {
  @Test("DE-3 OP-42 an immediate message is handed over once, with a link, and the first mail alone says a first word")
  func handedOver() async throws {
    try await DeliveryFixture.with { fixture in
      let people = fixture.recipients("anna", "bert")
      let messages = [fixture.message(to: people), fixture.message(to: [people[0]])]
      try await fixture.deliver()
      let sends = fixture.standIns.state.sends
      #expect(sends.count == 3)
      #expect(Set(sends.map(\.requestID)) == Set(try await fixture.texts("SELECT delivery_id::text FROM deliveries")))
      #expect(firstWords(sends) == ["anna": 1, "bert": 1])
      for send in sends {
        guard case .messageNotice(let notice) = send.content else { throw ServiceError.notFound("notice") }
        #expect(notice.senderName == "Karl")
        #expect(notice.link.hasPrefix("http://afterthoughts.example/message/"))
        #expect(send.addressee?.email == "\(send.addressee?.name ?? "")@example.com")
      }
      #expect(Set(fixture.tokens()).count == 3)
      #expect(try await fixture.events() == ["DeliveryDue", "DeliveryDue", "DeliveryDue"])
      #expect(messages.count == 2)
    }
  }

  @Test("DE-3 a later mail to someone who was greeted says no first word")
  func laterMail() async throws {
    try await DeliveryFixture.with { fixture in
      let people = fixture.recipients("anna")
      fixture.message(to: people)
      fixture.message(to: people, .relativeDelay(.init(count: 1, unit: .days)))
      try await fixture.deliver()
      #expect(fixture.standIns.state.sends.count == 1)
      try await fixture.database.execute("UPDATE deliveries SET due_time = now() WHERE hand_over_time IS NULL")
      #expect(try await fixture.dispatcher.dispatch() == 1)
      #expect(try await fixture.courier.handOver() == 1)
      #expect(firstWords(fixture.standIns.state.sends) == ["anna": 1])
    }
  }

  @Test("DE-2 several dispatchers at once hand each delivery over once, and greet each recipient once")
  func parallel() async throws {
    try await DeliveryFixture.with { fixture in
      let people = fixture.recipients("anna", "bert", "cora", "dora", "emil")
      for _ in 0..<100 { fixture.message(to: people) }
      try await fixture.confirm()
      try await fixture.scheduler.takeUp(fixture.release())
      let count = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<4 {
          group.addTask {
            var own = 0
            while case let count = try await fixture.dispatcher.dispatch(), count > 0 { own += count }
            return own
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(count == 500)
      #expect(try await fixture.count("links") == 500)
      while try await fixture.courier.handOver() > 0 {}
      let sends = fixture.standIns.state.sends
      #expect(sends.count == 500 && Set(sends.map(\.requestID)).count == 500)
      #expect(firstWords(sends) == ["anna": 1, "bert": 1, "cora": 1, "dora": 1, "emil": 1])
      #expect(try await fixture.events().count == 500)
    }
  }

  @Test("DE-4 nothing is handed over before its time")
  func notBefore() async throws {
    try await DeliveryFixture.with { fixture in
      fixture.message(to: fixture.recipients("anna"), .relativeDelay(.init(count: 1, unit: .days)))
      try await fixture.deliver()
      #expect(fixture.standIns.state.sends.isEmpty)
      let wait = try #require(try await DeliveryStore.untilNextDue(in: fixture.database))
      #expect(wait > .zero && wait < .seconds(2 * 86_400))
      try await fixture.database.execute("UPDATE deliveries SET due_time = now() + interval '1 minute'")
      #expect(try await fixture.dispatcher.dispatch() == 0)
      try await fixture.database.execute("UPDATE deliveries SET due_time = now()")
      #expect(try await fixture.dispatcher.dispatch() == 1)
      #expect(try await DeliveryStore.untilNextDue(in: fixture.database) == nil)
    }
  }

  @Test("DE-2 nothing is handed over while the schedule is not complete")
  func incomplete() async throws {
    try await DeliveryFixture.with { fixture in
      fixture.message(to: fixture.recipients("anna"))
      try await fixture.confirm()
      try await fixture.scheduler.takeUp(fixture.release())
      try await fixture.database.execute("UPDATE accounts SET schedule_time = NULL")
      #expect(try await fixture.dispatcher.dispatch() == 0)
      try await fixture.database.execute("UPDATE accounts SET schedule_time = now()")
      #expect(try await fixture.dispatcher.dispatch() == 1)
    }
  }

  @Test("OP-45 what goes out more than an hour after its time is marked late")
  func late() async throws {
    try await DeliveryFixture.with { fixture in
      let people = fixture.recipients("anna")
      for _ in 0..<2 { fixture.message(to: people) }
      try await fixture.confirm()
      try await fixture.scheduler.takeUp(fixture.release())
      try await fixture.database.execute(
        """
        UPDATE deliveries SET due_time = now() - interval '59 minutes'
          - (CASE WHEN delivery_id = (SELECT min(delivery_id::text)::uuid FROM deliveries)
              THEN interval '2 minutes' ELSE interval '0' END)
        """)
      #expect(try await fixture.dispatcher.dispatch() == 2)
      #expect(try await fixture.count("deliveries WHERE late") == 1)
    }
  }

  @Test("D6 while notifications is away a hand-over stays queued, under the same id")
  func notificationsAway() async throws {
    try await DeliveryFixture.with { fixture in
      fixture.message(to: fixture.recipients("anna"))
      fixture.standIns.set { $0.failures["send"] = .unavailable("away") }
      try await fixture.deliver()
      #expect(fixture.standIns.state.sends.isEmpty)
      #expect(try await fixture.count("send_queue") == 1)
      fixture.standIns.set { $0.failures = [:] }
      try await fixture.database.execute("UPDATE send_queue SET next_attempt_time = now()")
      #expect(try await fixture.courier.handOver() == 1)
      #expect(
        try await fixture.texts("SELECT delivery_id::text FROM deliveries")
          == fixture.standIns.state.sends.map(\.requestID))
    }
  }

  @Test("DE-4 due deliveries are found by the index of those that wait, however many others there are")
  func index() async throws {
    try await DeliveryFixture.with { fixture in
      fixture.recipients("anna")
      try await fixture.confirm()
      try await fixture.scheduler.takeUp(fixture.release())
      try await fixture.database.execute(
        """
        INSERT INTO deliveries (delivery_id, account_id, message_id, recipient_id, message_type, due_time, late, status,
          hand_over_time)
        SELECT gen_random_uuid(), account_id, gen_random_uuid(), recipient_id, 'letter',
          now() + make_interval(mins => CASE WHEN n <= 3 THEN -1 ELSE 60 + n END), false,
          CASE WHEN n <= 2000 THEN 'pending' ELSE 'viewed' END, CASE WHEN n <= 2000 THEN NULL ELSE now() END
        FROM recipients, generate_series(1, 20000) AS n
        """)
      try await fixture.database.execute("ANALYZE")
      try await fixture.database.transaction { transaction in
        #expect(try await DeliveryStore(transaction).claimDue(limit: 200).count == 3)
        let scans = try await transaction.query(
          """
          SELECT pg_stat_get_xact_numscans('deliveries_due'::regclass), pg_stat_get_xact_numscans('deliveries'::regclass)
          """)
        let (index, sequential) = try scans[0].decode((Int64, Int64).self)
        #expect(index == 1 && sequential == 0)
      }
    }
  }

  /// How many mails to each person say a first word.
  private func firstWords(_ sends: [NotificationsV1.SendRequest]) -> [String: Int] {
    sends.reduce(into: [:]) { counts, send in
      if case .messageNotice(let notice) = send.content, notice.firstWord {
        counts[send.addressee?.name ?? "", default: 0] += 1
      }
    }
  }
}
