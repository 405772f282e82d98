import Postgres
import Primitives
import Testing

private enum Mood: String, PostgresCodable { case calm, merry }

@Suite(.timeLimit(.minutes(1)))
struct TypeTests {
  @Test("Postgres every type comes back as it went, with its extremes")
  func scalars() async throws {
    try await PostgresFixture.with { fixture in
      func check<Value: PostgresCodable & Equatable>(_ values: [Value]) async throws {
        for value in values {
          let back = try await fixture.database.query("SELECT \(value)")[0].decode(Value.self)
          #expect(back == value)
          let optional = try await fixture.database.query("SELECT \(Value?.some(value))")[0].decode(Value?.self)
          #expect(optional == value)
        }
        let null = try await fixture.database.query("SELECT \(Value?.none)")[0].decode(Value?.self)
        #expect(null == nil)
      }
      try await check([true, false])
      try await check([Int16.min, -1, 0, Int16.max])
      try await check([Int32.min, -1, 0, Int32.max])
      try await check([Int64.min, -1, 0, Int64.max])
      try await check([Int.min, 7, Int.max])
      try await check([-0.5, .infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude])
      try await check(["", "plain", "Grüße 🕯️", String(repeating: "x", count: 100_000)])
      try await check([[], [0, 255, 7], [UInt8](repeating: 9, count: 100_000)] as [[UInt8]])
      try await check([Identifier(), Identifier(high: 0, low: 0), Identifier(high: .max, low: .max)])
      try await check([Instant(microseconds: 0), Instant(microseconds: -1), Instant.now()])
      let dates = [(1, 1, 1), (1999, 12, 31), (2000, 2, 29), (9999, 12, 31)]
      try await check(dates.compactMap { CivilDate(year: $0.0, month: $0.1, day: $0.2) })
      try await check([Mood.calm, .merry])
    }
  }

  @Test("Postgres arrays come back as they went, the empty one too")
  func arrays() async throws {
    try await PostgresFixture.with { fixture in
      func check<Value: PostgresCodable & Equatable>(_ value: Value) async throws {
        let back = try await fixture.database.query("SELECT \(value)")[0].decode(Value.self)
        #expect(back == value)
      }
      try await check([Identifier(), Identifier()])
      try await check([Identifier]())
      try await check(["a", "", "{\"x\",NULL}"])
      try await check([Int64.min, .max])
      try await check([Int32.min, .max])
      try await check([1, 2, 3])
      try await check([true, false])
      try await check([Instant(microseconds: 1)])
      try await check([[1, 2], [], [255]] as [[UInt8]])
      let row = try await fixture.database.query("SELECT 3 = ANY(\([1, 2, 3])), ARRAY[1, NULL]::bigint[]")[0]
      let isFound = try row.decode(Bool.self, at: 0)
      #expect(isFound)
      #expect(throws: RowError.self) { try row.decode([Int].self, at: 1) }
    }
  }

  @Test("Postgres a row's columns are decoded together, integers widen")
  func rows() async throws {
    try await PostgresFixture.with { fixture in
      let row = try await fixture.database.query("SELECT 1::int4, 2::int2, 'x'::varchar(3), NULL::uuid, true")[0]
      let (small, tiny, text, id, flag) = try row.decode((Int, Int64, String, Identifier?, Bool).self)
      #expect(small == 1 && tiny == 2 && text == "x" && id == nil && flag)
    }
  }

  @Test("Postgres a wrong shape is a clear error without values")
  func shapes() async throws {
    try await PostgresFixture.with { fixture in
      let row = try await fixture.database.query("SELECT 'secret words'::text AS title, NULL::bigint AS size")[0]
      func message(_ body: () throws -> Void) -> String {
        do { try body() } catch { return "\(error)" }
        return "nothing"
      }
      #expect(message { _ = try row.decode(String.self) } == "the row has 2 columns where 1 are read")
      #expect(
        message { _ = try row.decode((Identifier, Int?).self) }
          == "column 0 (title) is text where uuid is read")
      #expect(
        message { _ = try row.decode((String, Int).self) } == "column 1 (size) is NULL where a value is read")
      #expect(
        message { _ = try row.decode(Mood.self, at: 0) } == "column 0 (title, text) holds what cannot be read as text")
      #expect(message { _ = try row.decode(Int.self, at: 2) } == "the row has 2 columns where 3 are read")
    }
  }

  @Test("Postgres infinite times and dates cannot be read")
  func infinities() async throws {
    try await PostgresFixture.with { fixture in
      for text in ["infinity", "-infinity"] {
        let row = try await fixture.database.query("SELECT \(text)::text::timestamptz, \(text)::text::date")[0]
        #expect(throws: RowError.self) { try row.decode(Instant.self, at: 0) }
        #expect(throws: RowError.self) { try row.decode(CivilDate.self, at: 1) }
      }
    }
  }

  @Test("Postgres an interpolated value is bound, never read as SQL")
  func injection() async throws {
    try await PostgresFixture.with { fixture in
      try await fixture.database.execute("CREATE TABLE notes (body text NOT NULL)")
      let attack = "x'); DROP TABLE notes; --"
      let query: Query = "INSERT INTO notes (body) VALUES (\(attack))"
      #expect(query.text == "INSERT INTO notes (body) VALUES ($1)")
      #expect(try await fixture.database.execute(query) == 1)
      let rows = try await fixture.database.query("SELECT body FROM notes WHERE body = \(attack)")
      let bodies = try rows.map { try $0.decode(String.self) }
      #expect(bodies == [attack])
    }
  }

  @Test("Postgres a query spliced into another has its parameters renumbered")
  func fragments() {
    let filter: Query = "owner = \(7) AND title = \("a")"
    let query: Query = "SELECT 1 FROM t WHERE id = \(1) AND \(filter) LIMIT \(10)"
    #expect(query.text == "SELECT 1 FROM t WHERE id = $1 AND owner = $2 AND title = $3 LIMIT $4")
  }
}
