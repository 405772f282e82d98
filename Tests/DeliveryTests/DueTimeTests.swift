import API
import Postgres
import Primitives
import Testing

@testable import delivery

@Suite struct DueTimeTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let condition: Condition
    let confirmed: String
    let zone: String
    let due: String
    let late: Bool
    var testDescription: String { name }

    init(
      _ name: String, _ condition: Condition, confirmed: String = "2026-06-01T12:00:00Z",
      zone: String = "Europe/Berlin",
      due: String, late: Bool = false
    ) {
      (self.name, self.condition, self.confirmed, self.zone) = (name, condition, confirmed, zone)
      (self.due, self.late) = (due, late)
    }
  }

  static func date(_ year: Int, _ month: Int, _ day: Int, _ time: String? = nil) -> Condition {
    .date(CivilDate(year: year, month: month, day: day)!, time: time)
  }

  static func delay(_ count: Int, _ unit: String) -> Condition { .delay(count: count, unit: unit) }

  static let cases = [
    Case("DE-3 immediately", .immediate, due: "2026-06-01T12:00:00Z"),
    Case("OP-44 a date is 09:00 there, in summer", date(2027, 5, 1), due: "2027-05-01T07:00:00Z"),
    Case("OP-44 a date is 09:00 there, in winter", date(2027, 1, 10), due: "2027-01-10T08:00:00Z"),
    Case("OP-44 a date east", date(2027, 1, 10), zone: "Pacific/Auckland", due: "2027-01-09T20:00:00Z"),
    Case("OP-44 an own time", date(2027, 7, 4, "23:59"), zone: "America/New_York", due: "2027-07-05T03:59:00Z"),
    Case("OP-44 midnight", date(2027, 7, 4, "0:00"), due: "2027-07-03T22:00:00Z"),
    Case("OP-44 a minute before the gap", date(2027, 3, 28, "1:59"), due: "2027-03-28T00:59:00Z"),
    Case("OP-44 the first time of the gap", date(2027, 3, 28, "2:00"), due: "2027-03-28T01:00:00Z"),
    Case("OP-44 in the gap", date(2027, 3, 28, "2:30"), due: "2027-03-28T01:00:00Z"),
    Case("OP-44 after the gap", date(2027, 3, 28, "3:00"), due: "2027-03-28T01:00:00Z"),
    Case("OP-44 the first time that comes twice", date(2026, 10, 25, "2:00"), due: "2026-10-25T00:00:00Z"),
    Case("OP-44 a time that comes twice", date(2026, 10, 25, "2:30"), due: "2026-10-25T00:30:00Z"),
    Case("OP-44 after the overlap", date(2026, 10, 25, "3:00"), due: "2026-10-25T02:00:00Z"),
    Case(
      "OP-44 a gap of half an hour", date(2026, 10, 4, "2:15"),
      zone: "Australia/Lord_Howe", due: "2026-10-03T15:30:00Z"),
    Case(
      "OP-44 an overlap of half an hour", date(2027, 4, 4, "1:45"),
      zone: "Australia/Lord_Howe", due: "2027-04-03T14:45:00Z"),
    Case("OP-45 a past date", date(2026, 5, 1), due: "2026-06-01T12:00:00Z", late: true),
    Case("OP-45 this morning", date(2026, 6, 1), due: "2026-06-01T12:00:00Z", late: true),
    Case("OP-45 the very minute", date(2026, 6, 1, "14:00"), due: "2026-06-01T12:00:00Z"),
    Case("OP-45 a minute before", date(2026, 6, 1, "13:59"), due: "2026-06-01T12:00:00Z", late: true),
    Case("OP-45 a minute after", date(2026, 6, 1, "14:01"), due: "2026-06-01T12:01:00Z"),
    Case("OP-46 a day", delay(1, "days"), due: "2026-06-02T07:00:00Z"),
    Case(
      "OP-46 a day from the local date", delay(1, "days"),
      confirmed: "2026-06-01T22:30:00Z", due: "2026-06-03T07:00:00Z"),
    Case(
      "OP-46 a day onto the gap's date", delay(1, "days"),
      confirmed: "2027-03-27T12:00:00Z", due: "2027-03-28T07:00:00Z"),
    Case(
      "OP-46 Jan 31 and a month", delay(1, "months"),
      confirmed: "2027-01-31T12:00:00Z", due: "2027-02-28T08:00:00Z"),
    Case(
      "OP-46 Jan 31 and a month, leap", delay(1, "months"),
      confirmed: "2028-01-31T12:00:00Z", due: "2028-02-29T08:00:00Z"),
    Case(
      "OP-46 Jan 31 and two months", delay(2, "months"),
      confirmed: "2027-01-31T12:00:00Z", due: "2027-03-31T07:00:00Z"),
    Case("OP-46 Feb 29 and a year", delay(1, "years"), confirmed: "2028-02-29T12:00:00Z", due: "2029-02-28T08:00:00Z"),
    Case(
      "OP-46 Feb 29 and four years", delay(4, "years"),
      confirmed: "2028-02-29T12:00:00Z", due: "2032-02-29T08:00:00Z"),
    Case("OP-46 the most days", delay(36_500, "days"), due: "2126-05-08T07:00:00Z"),
    Case("OP-46 the most months", delay(1200, "months"), due: "2126-06-01T07:00:00Z"),
    Case("OP-46 the most years", delay(100, "years"), due: "2126-06-01T07:00:00Z"),
  ]

  @Test("DE-4 DE-5 every condition is due when it should be")
  func table() async throws {
    try await DeliveryFixture.with { fixture in
      for expected in Self.cases {
        let confirmed = try await fixture.database.query("SELECT \(expected.confirmed)::text::timestamptz")[0]
          .decode(Instant.self, at: 0)
        let due = try await fixture.database.query("SELECT \(expected.due)::text::timestamptz")[0]
          .decode(Instant.self, at: 0)
        let result = try await fixture.database.transaction { transaction in
          try await DeliveryStore(transaction).dueTime(
            expected.condition, confirmTime: confirmed, timeZone: expected.zone)
        }
        #expect(result.due == due, "\(expected.name): \(result.due)")
        #expect(result.late == expected.late, "\(expected.name)")
      }
    }
  }

  @Test("DE-4 what the vault says becomes a condition, or is refused")
  func conditions() throws {
    typealias Wire = VaultV1.DeliveryCondition
    let day = CommonV1.Date(year: 2027, month: 3, day: 28)
    func read(_ condition: Wire.Condition?) throws -> Condition {
      try ScheduleRules.condition(Wire(condition: condition))
    }
    #expect(try read(.immediate(.init())) == .immediate)
    #expect(try read(.specificDate(.init(date: day))) == Self.date(2027, 3, 28))
    #expect(
      try read(.specificDate(.init(date: day, time: .init(hour: 7, minute: 5)))) == Self.date(2027, 3, 28, "7:05"))
    #expect(try read(.relativeDelay(.init(count: 3, unit: .months))) == Self.delay(3, "months"))
    for wrong: Wire.Condition? in [
      nil, .specificDate(.init()), .specificDate(.init(date: .init(year: 2027, month: 2, day: 29))),
      .relativeDelay(.init(count: 0, unit: .days)), .relativeDelay(.init(count: 1)),
    ] {
      #expect(throws: ServiceError.self) { try read(wrong) }
    }
    #expect(throws: ServiceError.self) { try ScheduleRules.condition(nil) }
    #expect(throws: ServiceError.self) { try ScheduleRules.type(.unspecified) }
  }

  @Test("DE-8 OP-34 a recipient who is named and reached through groups is reached once; strangers are left out")
  func audience() {
    let (anna, bert, stranger, family) = (Identifier(), Identifier(), Identifier(), Identifier())
    let message = VaultV1.ReadyMessage(
      recipientIDs: ["\(anna)", "\(stranger)"], groupIDs: ["\(family)", "\(Identifier())"])
    let reached = ScheduleRules.audience(
      of: message, recipients: [anna, bert], groups: [family: [bert, anna, stranger]])
    #expect(reached == [anna, bert])
  }
}
