import EventLoop
import Postgres
import Primitives
import Testing

/// A database of its own for one test, on the server that AFTERTHOUGHTS_TEST_DATABASE_URL names (a role that may
/// create databases), and loops to reach it from.
struct PostgresFixture: Sendable {
  let database: Database
  let url: Secret<String>
  let group: EventLoopGroup
  private let name: String
  private let admin: Database
  private let adminGroup: EventLoopGroup

  static func with(
    loops: Int = 1, _ configuration: DatabaseConfiguration = .init(),
    _ body: (PostgresFixture) async throws -> Void
  ) async throws {
    let fixture = try await PostgresFixture(loops: loops, configuration)
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(fixture))
    } catch {
      result = .failure(error)
    }
    try await fixture.end()
    try result.get()
  }

  private init(loops: Int, _ configuration: DatabaseConfiguration) async throws {
    var environment = Configuration.process()
    let found = environment.optional("AFTERTHOUGHTS_TEST_DATABASE_URL")
    let adminURL = try #require(
      found,
      "AFTERTHOUGHTS_TEST_DATABASE_URL is not set: these tests need a PostgreSQL server")
    name = "test_" + Identifier().description.filter { $0 != "-" }
    adminGroup = EventLoopGroup(count: 1, name: "admin")
    admin = Database(url: Secret(adminURL), group: adminGroup)
    try await admin.execute("CREATE DATABASE \(unescaped: name) TEMPLATE template0")
    url = Secret(PostgresFixture.url(adminURL, database: name))
    group = EventLoopGroup(count: loops, name: "test")
    database = Database(url: url, group: group, configuration: configuration)
  }

  private func end() async throws {
    await database.close()
    await group.shutdown()
    try await admin.execute("DROP DATABASE \(unescaped: name) WITH (FORCE)")
    await admin.close()
    await adminGroup.shutdown()
  }

  private static func url(_ url: String, database: String) -> String {
    let parts = url.split(separator: "?", maxSplits: 1)
    let base = parts[0][..<(parts[0].lastIndex(of: "/") ?? parts[0].endIndex)]
    return "\(base)/\(database)" + (parts.count > 1 ? "?\(parts[1])" : "")
  }

  /// Ends the sessions of the test's database that run or last ran something like `pattern`, from outside of it.
  func endSessions(lastQueryLike pattern: String = "%") async throws -> Int {
    try await admin.query(
      """
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = \(name) AND backend_type = 'client backend' AND query LIKE \(pattern)
      """
    ).count
  }

  /// How many sessions of the test's database run a statement like `pattern` at this moment.
  func running(like pattern: String) async throws -> Int {
    try await admin.query(
      "SELECT 1 FROM pg_stat_activity WHERE datname = \(name) AND state = 'active' AND query LIKE \(pattern)"
    ).count
  }

  func count(_ table: String) async throws -> Int {
    try await database.query("SELECT count(*) FROM \(unescaped: table)")[0].decode(Int.self)
  }
}

/// Asks again, without a pause, until `condition` holds; the suite's time limit ends it when it never does.
func until(_ condition: () async throws -> Bool) async throws {
  while try await !condition() { await Task.yield() }
}
