import Postgres
import Primitives
import Testing

@Suite(.timeLimit(.minutes(1)))
struct MigratorTests {
  private func migration(_ name: String, _ sql: String) -> Migration { Migration(name, Array(sql.utf8)) }

  private var two: [Migration] {
    [
      migration(
        "v0001_create_notes", "CREATE TABLE notes (id uuid PRIMARY KEY); INSERT INTO notes VALUES (gen_random_uuid());"),
      migration("v0002_add_title", "ALTER TABLE notes ADD COLUMN title text"),
    ]
  }

  @Test("Postgres migrations are applied once, in order, in the service's schema")
  func apply() async throws {
    try await PostgresFixture.with { fixture async throws in
      let migrator = Migrator(url: fixture.url, schema: "vault")
      #expect(try await migrator.check(two) == ["v0001_create_notes", "v0002_add_title"])
      #expect(try await migrator.migrate([two[0]]) == ["v0001_create_notes"])
      #expect(try await migrator.check(two) == ["v0002_add_title"])
      #expect(try await migrator.migrate(two) == ["v0002_add_title"])
      #expect(try await migrator.migrate(two) == [])
      #expect(try await migrator.check(two) == [])
      #expect(try await fixture.count("vault.notes") == 1)
    }
  }

  @Test("Postgres an edited, unknown or late migration is refused")
  func refused() async throws {
    try await PostgresFixture.with { fixture in
      let migrator = Migrator(url: fixture.url, schema: "vault")
      _ = try await migrator.migrate(two)
      func refusal(_ all: [Migration]) async -> String {
        for attempt in [migrator.migrate, migrator.check] as [([Migration]) async throws -> [String]] {
          do { _ = try await attempt(all) } catch { return "\(error)" }
        }
        return "accepted"
      }
      let edited = [migration("v0001_create_notes", "CREATE TABLE notes (id uuid)"), two[1]]
      #expect(await refusal(edited).hasPrefix("migration v0001_create_notes: the file differs"))
      #expect(await refusal([two[1]]).hasPrefix("migration v0001_create_notes: was applied but is not known"))
      let late = [two[0], migration("v0002_a_late_one", "SELECT 1")]
      #expect(await refusal(late).hasPrefix("migration v0002_a_late_one: a later one"))
      #expect(await refusal([two[1], two[0]]).hasPrefix("migration v0001_create_notes: its name is malformed"))
      #expect(await refusal([migration("0001_x", "")]).hasPrefix("migration 0001_x: its name is malformed"))
      // The previous program, on the schema of the next one.
      #expect(await refusal([two[0]]) == "accepted")
    }
  }

  @Test("Postgres a failing migration leaves nothing of itself and names itself")
  func failing() async throws {
    try await PostgresFixture.with { fixture in
      let migrator = Migrator(url: fixture.url, schema: "vault")
      let all = [two[0], migration("v0002_wrong", "CREATE TABLE other (n int); SELECT nothing")]
      let error = await #expect(throws: MigrationError.self) { _ = try await migrator.migrate(all) }
      #expect(error.map { "\($0)" }?.hasPrefix("migration v0002_wrong: SQLSTATE 42703") == true)
      #expect(try await migrator.check(two) == ["v0002_add_title"])
      let exists = try await fixture.database.query("SELECT to_regclass('vault.other') IS NULL")[0].decode(Bool.self)
      #expect(exists)
    }
  }

  @Test("Postgres of many that migrate at once one works and all succeed")
  func concurrent() async throws {
    try await PostgresFixture.with { fixture in
      let url = fixture.url
      let all = two
      let applied = try await withThrowingTaskGroup(of: [String].self) { tasks in
        for _ in 0..<8 { tasks.addTask { try await Migrator(url: url, schema: "vault").migrate(all) } }
        return try await tasks.reduce(into: []) { $0 += $1 }
      }
      #expect(applied == ["v0001_create_notes", "v0002_add_title"])
    }
  }
}
