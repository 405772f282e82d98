import API
import Primitives
import Protobuf
import Testing

@Suite struct ConversionTests {
  typealias Timestamp = GoogleProtobuf.Timestamp

  @Test(
    "API carries instants to the microsecond, from the year 1 to the year 9999",
    arguments: [
      0, 1, -1, 999_999, -999_999, -1_000_000, 1_790_000_000_123_456, -62_135_596_800_000_000,
      -62_135_596_799_999_999, 253_402_300_799_999_999, 253_402_300_799_000_001,
    ] as [Int64])
  func instants(microseconds: Int64) throws {
    let instant = Instant(microseconds: microseconds)
    let timestamp = Timestamp(instant)
    #expect((0...999_999_000).contains(timestamp.nanos))
    #expect(timestamp.seconds * 1_000_000 + Int64(timestamp.nanos) / 1000 == microseconds)
    #expect(Instant(try Timestamp(serialized: timestamp.serialized())) == instant)
  }

  @Test("API refuses timestamps that are out of range, without a trap")
  func badTimestamps() {
    #expect(Instant(Timestamp(seconds: 253_402_300_799, nanos: 999_999_999)) != nil)
    #expect(Instant(Timestamp(seconds: 253_402_300_800)) == nil)
    #expect(Instant(Timestamp(seconds: -62_135_596_800)) != nil)
    #expect(Instant(Timestamp(seconds: -62_135_596_801)) == nil)
    #expect(Instant(Timestamp(nanos: -1)) == nil)
    #expect(Instant(Timestamp(nanos: 1_000_000_000)) == nil)
    #expect(Instant(Timestamp(seconds: .max, nanos: .max)) == nil)
    #expect(Instant(Timestamp(seconds: .min, nanos: .min)) == nil)
  }

  @Test("API carries civil dates and refuses those that do not exist")
  func dates() throws {
    let leap = try #require(CivilDate(year: 2028, month: 2, day: 29))
    #expect(CivilDate(CommonV1.Date(leap)) == leap)
    #expect(CivilDate(CommonV1.Date(year: 2027, month: 2, day: 29)) == nil)
    #expect(CivilDate(CommonV1.Date()) == nil)
    #expect(CivilDate(CommonV1.Date(year: .min, month: .max, day: .max)) == nil)
  }
}
