package import Primitives

// The one hand-written file here: between proto messages and the types that they stand for.

extension Instant {
  /// nil outside the years 1 to 9999, and for nanoseconds outside 0 to 999,999,999. Drops what is below a microsecond.
  package init?(_ timestamp: GoogleProtobuf.Timestamp) {
    guard (-62_135_596_800...253_402_300_799).contains(timestamp.seconds),
      (0...999_999_999).contains(timestamp.nanos)
    else { return nil }
    self.init(seconds: timestamp.seconds, nanoseconds: timestamp.nanos)
  }
}

extension GoogleProtobuf.Timestamp {
  package init(_ instant: Instant) {
    self.init(seconds: instant.seconds, nanos: instant.nanoseconds)
  }
}

extension CivilDate {
  /// nil unless the date exists.
  package init?(_ date: CommonV1.Date) {
    self.init(year: Int(date.year), month: Int(date.month), day: Int(date.day))
  }
}

extension CommonV1.Date {
  package init(_ date: CivilDate) {
    self.init(year: Int32(date.year), month: Int32(date.month), day: Int32(date.day))
  }
}
