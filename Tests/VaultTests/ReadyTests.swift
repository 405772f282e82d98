import API
import Postgres
import Primitives
import Protobuf
import ServiceKit
import TestKit
import Testing

@Suite struct ReadyTests {
  @Test("VA-14 VA-15 saving to the vault needs title, content, recipient and condition; all that lack are named")
  func wholeness() async throws {
    try await VaultFixture.with { fixture in
      let error = try await refusal {
        try await fixture.saveToVault(.init(type: .letter, title: " ", body: "\n\t\u{a0}"))
      }
      #expect(error.code == .invalidArgument)
      #expect(
        error.violations.map(\.field) == [
          "content.title", "content.body", "content.recipient_ids", "content.delivery_condition",
        ])
      #expect(fixture.standIns.state.callCount == 0)
      #expect(try await fixture.count("messages") == 0)
    }
  }

  @Test("VA-14 a group alone is recipient enough, and so is a recipient alone")
  func eitherAudience() async throws {
    try await VaultFixture.with { fixture in
      _ = try await fixture.saveToVault(fixture.letter { $0.recipientIDs = [] })
      _ = try await fixture.saveToVault(fixture.letter { $0.groupIDs = [] })
      #expect(try await fixture.count("messages WHERE status = 2") == 2)
    }
  }

  @Test("VA-14 the database refuses a ready message that is not whole")
  func constraint() async throws {
    try await VaultFixture.with { fixture in
      let draft = try await fixture.saveDraft(fixture.letter { $0.body = "" })
      await #expect(throws: (any Error).self) {
        try await fixture.runtime.database.execute("UPDATE messages SET status = 2")
      }
      #expect(try await fixture.get(draft).status == .draft)
    }
  }

  @Test("VA-18 nothing becomes ready while no administrator is designated")
  func administrator() async throws {
    try await VaultFixture.with { fixture in
      let draft = try await fixture.saveDraft(fixture.letter())
      fixture.standIns.set { $0.hasAdministrator = false }
      let error = try await refusal { try await fixture.saveToVault(fixture.letter(), over: draft) }
      #expect((error.code, error.reason) == (.failedPrecondition, "NO_ADMINISTRATOR"))
      #expect(try await fixture.get(draft) == draft)
    }
  }

  @Test("OP-28 a message that is ready stays so without an administrator, and can still be kept as draft")
  func administratorRemoved() async throws {
    try await VaultFixture.with { fixture in
      let ready = try await fixture.saveToVault(fixture.letter())
      fixture.standIns.set { $0.hasAdministrator = false }
      #expect(try await fixture.get(ready).status == .ready)
      #expect(try await fixture.saveDraft(fixture.letter(), over: ready).status == .draft)
    }
  }

  @Test("ID-6 nothing becomes ready before the author's address is verified")
  func verification() async throws {
    try await VaultFixture.with { fixture in
      let error = try await refusal { try await fixture.saveToVault(fixture.letter(), emailVerified: false) }
      #expect((error.code, error.reason) == (.failedPrecondition, "EMAIL_NOT_VERIFIED"))
      #expect(try await fixture.count("messages") == 0)
    }
  }

  @Test("VA-8 recipients and groups that are not the author's are refused by name")
  func foreignAudience() async throws {
    try await VaultFixture.with { fixture in
      let error = try await refusal {
        try await fixture.saveToVault(
          fixture.letter { content in
            content.recipientIDs = ["\(fixture.recipient)", "\(fixture.recipient)", "\(Identifier())"]
            content.groupIDs = ["\(Identifier())", "\(fixture.group)"]
          })
      }
      #expect(error.violations.map(\.field) == ["content.recipient_ids[2]", "content.group_ids[0]"])
      #expect(try await fixture.count("messages") == 0)
    }
  }

  @Test("VA-18 a neighbour that cannot be asked makes a save UNAVAILABLE, never a yes; a draft needs none")
  func neighboursDown() async throws {
    try await VaultFixture.with(neighbours: false) { fixture in
      let error = try await refusal { try await fixture.saveToVault(fixture.letter()) }
      #expect(error.code == .unavailable)
      #expect(try await fixture.count("messages") == 0)
      #expect(try await fixture.saveDraft(fixture.letter()).status == .draft)
    }
  }

  @Test(
    "VA-10 VA-11 each kind of condition comes back as it was saved",
    arguments: [
      .init(condition: .immediate(.init())),
      .init(condition: .specificDate(.init(date: .init(year: 2096, month: 2, day: 29)))),
      .init(
        condition: .specificDate(
          .init(date: .init(year: 9999, month: 12, day: 31), time: .init(hour: 23, minute: 59)))),
      .init(condition: .specificDate(.init(date: .init(year: 2090, month: 1, day: 1), time: .init()))),
      .init(condition: .relativeDelay(.init(count: 1, unit: .days))),
      .init(condition: .relativeDelay(.init(count: 36_500, unit: .days))),
      .init(condition: .relativeDelay(.init(count: 1200, unit: .months))),
      .init(condition: .relativeDelay(.init(count: 100, unit: .years))),
    ] as [VaultV1.DeliveryCondition])
  func conditions(_ condition: VaultV1.DeliveryCondition) async throws {
    try await VaultFixture.with { fixture in
      let saved = try await fixture.saveToVault(fixture.letter { $0.deliveryCondition = condition })
      #expect(try await fixture.get(saved).content?.deliveryCondition == condition)
    }
  }

  @Test(
    "OP-46 a condition out of range is refused, in a draft too",
    arguments: [
      (.relativeDelay(.init(count: 0, unit: .days)), "relative_delay.count"),
      (.relativeDelay(.init(count: -1, unit: .years)), "relative_delay.count"),
      (.relativeDelay(.init(count: 36_501, unit: .days)), "relative_delay.count"),
      (.relativeDelay(.init(count: 1201, unit: .months)), "relative_delay.count"),
      (.relativeDelay(.init(count: 101, unit: .years)), "relative_delay.count"),
      (.relativeDelay(.init(count: 1, unit: .unspecified)), "relative_delay.unit"),
      (.relativeDelay(.init(count: 1, unit: .init(rawValue: 9))), "relative_delay.unit"),
      (.specificDate(.init()), "specific_date.date"),
      (.specificDate(.init(date: .init(year: 2100, month: 2, day: 29))), "specific_date.date"),
      (.specificDate(.init(date: .init(year: 2090, month: 13, day: 1))), "specific_date.date"),
      (.specificDate(.init(date: .init(year: 10_000, month: 1, day: 1))), "specific_date.date"),
      (
        .specificDate(.init(date: .init(year: 2090, month: 1, day: 1), time: .init(hour: 24))),
        "specific_date.time.hour"
      ),
      (
        .specificDate(.init(date: .init(year: 2090, month: 1, day: 1), time: .init(minute: 60))),
        "specific_date.time.minute"
      ),
    ] as [(VaultV1.DeliveryCondition.Condition, String)])
  func conditionRanges(_ condition: VaultV1.DeliveryCondition.Condition, _ field: String) async throws {
    try await VaultFixture.with { fixture in
      let content = fixture.letter { $0.deliveryCondition = .init(condition: condition) }
      for save in [false, true] {
        let error = try await refusal {
          save ? try await fixture.saveToVault(content) : try await fixture.saveDraft(content)
        }
        #expect(error.violations.map(\.field) == ["content.delivery_condition." + field])
      }
      #expect(try await fixture.count("messages") == 0)
    }
  }

  @Test("OP-45 a date must lie in the future in the author's own zone, to the minute")
  func future() async throws {
    try await VaultFixture.with { fixture in
      for zone in ["Pacific/Kiritimati", "Etc/GMT+12", "UTC"] {
        fixture.standIns.set { $0.timeZone = zone }
        // The minute that is running has begun, so it is past; two minutes on is not.
        for (minutes, isAllowed) in [(0, false), (2, true)] {
          let rows = try await fixture.runtime.database.query(
            """
            SELECT local::date, (extract(hour FROM local) * 60 + extract(minute FROM local))::int
            FROM (SELECT now() AT TIME ZONE \(zone) + make_interval(mins => \(Int32(minutes))) AS local) AS clock
            """)
          let (day, minute) = try rows[0].decode((CivilDate, Int32).self)
          let date = CommonV1.Date(year: Int32(day.year), month: Int32(day.month), day: Int32(day.day))
          let content = fixture.letter {
            $0.deliveryCondition = .init(
              condition: .specificDate(.init(date: date, time: .init(hour: minute / 60, minute: minute % 60))))
          }
          if isAllowed {
            _ = try await fixture.saveToVault(content)
          } else {
            let error = try await refusal { try await fixture.saveToVault(content) }
            #expect(error.violations.map(\.field) == ["content.delivery_condition.specific_date"], "\(zone)")
            _ = try await fixture.saveDraft(content)
          }
        }
      }
    }
  }

  @Test("OP-44 a date without a time means 09:00 in the author's zone")
  func defaultHour() async throws {
    try await VaultFixture.with { fixture in
      // Zones in which it is now well before, and well after, 9 in the morning.
      let rows = try await fixture.runtime.database.query(
        "SELECT (extract(hour FROM now() AT TIME ZONE 'UTC'))::int")
      let hour = try rows[0].decode(Int32.self, at: 0)
      for (local, isAllowed) in [(Int32(7), true), (Int32(11), false)] {
        let offset = (local - hour + 36) % 24 - 12
        let zone = "Etc/GMT" + (offset >= 0 ? "-\(offset)" : "+\(-offset)")
        fixture.standIns.set { $0.timeZone = zone }
        let day = try await fixture.runtime.database.query("SELECT (now() AT TIME ZONE \(zone))::date")[0]
          .decode(CivilDate.self, at: 0)
        let content = fixture.letter {
          $0.deliveryCondition = .init(
            condition: .specificDate(
              .init(date: .init(year: Int32(day.year), month: Int32(day.month), day: Int32(day.day)))))
        }
        if isAllowed {
          _ = try await fixture.saveToVault(content)
        } else {
          #expect(try await refusal { try await fixture.saveToVault(content) }.code == .invalidArgument)
        }
      }
    }
  }
}
