import Primitives
import Testing

struct CivilDateTests {
  @Test(
    "Primitives civil dates agree with known days",
    arguments: [
      ("1970-01-01", 0), ("1969-12-31", -1), ("2000-02-29", 11016), ("2000-03-01", 11017), ("2026-11-30", 20787),
      ("1900-01-01", -25567), ("0001-01-01", -719_162), ("9999-12-31", 2_932_896),
    ])
  func known(text: String, days: Int) throws {
    let date = try #require(CivilDate(text))
    #expect(date.daysSinceEpoch == days)
    #expect(CivilDate(daysSinceEpoch: days) == date)
    #expect(date.description == text)
  }

  @Test("Primitives civil dates count every day from 1900 to 2400 once, in order, and read back")
  func everyDay() {
    var number = CivilDate(year: 1900, month: 1, day: 1)!.daysSinceEpoch
    var previous: CivilDate?
    for year in 1900...2400 {
      for month in 1...12 {
        for day in 1...CivilDate.days(inMonth: month, of: year) {
          let date = CivilDate(year: year, month: month, day: day)!
          // Swift Testing's `expect` a million times over would take minutes.
          let holds =
            date.daysSinceEpoch == number && CivilDate(daysSinceEpoch: number) == date
            && previous.map { $0 < date } ?? true
          guard holds else {
            Issue.record("\(date)")
            return
          }
          previous = date
          number += 1
        }
      }
    }
    #expect(number - 1 == CivilDate(year: 2400, month: 12, day: 31)!.daysSinceEpoch)
    #expect(number - 1 - CivilDate(year: 1900, month: 1, day: 1)!.daysSinceEpoch == 182_986)
  }

  @Test("Primitives civil dates know leap years")
  func leapYears() {
    for (year, days) in [(1900, 28), (2000, 29), (2100, 28), (2024, 29), (2023, 28), (2400, 29), (4, 29), (100, 28)] {
      #expect(CivilDate.days(inMonth: 2, of: year) == days)
      #expect((CivilDate(year: year, month: 2, day: 29) != nil) == (days == 29))
    }
  }

  @Test(
    "Primitives civil dates refuse what is no date",
    arguments: [
      "", "2026-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "2026-04-31", "0000-01-01", "26-01-01", "2026-1-01",
      "2026-01-01 ", "2026/01/01", "20260101", "2026-01-01-01", "-026-01-01", "2026-+1-01", "2026-01-+1", "+026-01-01",
      "２０２６-01-01", "2026-01-1a",
    ])
  func badText(text: String) {
    #expect(CivilDate(text) == nil)
  }
}

struct InstantTests {
  @Test(
    "Primitives instants are written as RFC 3339, before 1970 too",
    arguments: [
      (0, "1970-01-01T00:00:00.000000Z"), (1, "1970-01-01T00:00:00.000001Z"), (-1, "1969-12-31T23:59:59.999999Z"),
      (1_796_067_100_000_000, "2026-11-30T19:31:40.000000Z"), (-86_400_000_000, "1969-12-31T00:00:00.000000Z"),
      (-86_400_000_001, "1969-12-30T23:59:59.999999Z"), (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
      (-62_135_596_800_000_000, "0001-01-01T00:00:00.000000Z"), (32_503_680_000_999_999, "3000-01-01T00:00:00.999999Z"),
    ] as [(Int64, String)])
  func description(microseconds: Int64, text: String) {
    #expect(Instant(microseconds: microseconds).description == text)
  }

  @Test(
    "Primitives instants split into seconds rounded down and nanoseconds that are never negative",
    arguments: [0, 1, -1, 999_999, -999_999, -1_000_000, 1_500_000, -1_500_000, 253_402_300_799_999_999] as [Int64])
  func parts(microseconds: Int64) {
    let instant = Instant(microseconds: microseconds)
    #expect((0...999_999_000).contains(instant.nanoseconds))
    #expect(Instant(seconds: instant.seconds, nanoseconds: instant.nanoseconds) == instant)
  }

  @Test("Primitives instants and durations add up")
  func arithmetic() {
    let instant = Instant(seconds: 100)
    #expect(instant.advanced(by: .seconds(-101)) == Instant(microseconds: -1_000_000))
    #expect(instant.duration(to: Instant(seconds: 40)) == .seconds(-60))
    #expect(Duration.milliseconds(-1500).microseconds == -1_500_000)
    #expect(Duration.seconds(Int64.max).nanoseconds == .max && Duration.seconds(Int64.min).nanoseconds == .min)
    #expect(Monotonic(nanoseconds: 5).advanced(by: .seconds(Int64.max)).nanoseconds == .max)
    #expect(Monotonic.now() <= Monotonic.now())
  }
}
