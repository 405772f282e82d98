package import EventLoop
package import Postgres
package import Primitives

/// A database of its own for one test, on the server that AFTERTHOUGHTS_TEST_DATABASE_URL names (as a role that may
/// create databases), with one service's schema in it.
package struct TestDatabase: Sendable {
  package let database: Database
  package let url: Secret<String>
  package let group: EventLoopGroup
  private let name: String
  private let adminURL: Secret<String>

  /// Migrates the schema and connects with it as the search path. Ends with `drop()`.
  package static func create(
    migrations: [Migration], schema: String, group: EventLoopGroup
  ) async throws -> TestDatabase {
    var environment = Configuration.process()
    guard let adminURL = environment.optional("AFTERTHOUGHTS_TEST_DATABASE_URL") else {
      throw TestSetupFault(text: "AFTERTHOUGHTS_TEST_DATABASE_URL is not set: this test needs a PostgreSQL server")
    }
    let name = "test_" + Identifier().description.filter { $0 != "-" }
    try await asAdmin(Secret(adminURL)) {
      try await $0.execute("CREATE DATABASE \(unescaped: name) TEMPLATE template0")
    }
    let url = Secret(replacingDatabase(of: adminURL, with: name))
    let database = Database(url: url, group: group, configuration: DatabaseConfiguration(schema: schema))
    let made = TestDatabase(database: database, url: url, group: group, name: name, adminURL: Secret(adminURL))
    do {
      _ = try await Migrator(url: url, schema: schema).migrate(migrations)
    } catch {
      try await made.drop()
      throw error
    }
    return made
  }

  /// Closes the connections and removes the database.
  package func drop() async throws {
    await database.close()
    try await TestDatabase.asAdmin(adminURL) {
      try await $0.execute("DROP DATABASE IF EXISTS \(unescaped: name) WITH (FORCE)")
    }
  }

  private static func asAdmin(_ url: Secret<String>, _ body: (Database) async throws -> Void) async throws {
    let group = EventLoopGroup(count: 1)
    let database = Database(url: url, group: group)
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(database))
    } catch {
      result = .failure(error)
    }
    await database.close()
    await group.shutdown()
    try result.get()
  }

  private static func replacingDatabase(of url: String, with name: String) -> String {
    let parts = url.split(separator: "?", maxSplits: 1)
    let base = parts[0][..<(parts[0].lastIndex(of: "/") ?? parts[0].endIndex)]
    return "\(base)/\(name)" + (parts.count > 1 ? "?\(parts[1])" : "")
  }
}

/// Why a test could not begin.
package struct TestSetupFault: Error, CustomStringConvertible {
  let text: String
  package var description: String { text }
}
