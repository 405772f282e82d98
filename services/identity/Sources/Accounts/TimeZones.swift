internal import Postgres
internal import Primitives
internal import Synchronization

/// The zones that PostgreSQL knows, which is where local times are computed. Asked for once an hour, because the list
/// is slow to make and follows the operator's updates of the zone data.
final class TimeZones: Sendable {
  private let database: Database
  private let known = Mutex<(names: Set<String>, end: Monotonic)?>(nil)

  init(database: Database) {
    self.database = database
  }

  func names() async throws -> Set<String> {
    let now = Monotonic.now()
    if let known = known.withLock({ $0 }), now < known.end { return known.names }
    let rows = try await database.query(
      """
      SELECT name FROM pg_timezone_names
      WHERE name NOT LIKE 'posix%' AND name NOT LIKE 'right/%' AND name NOT IN ('localtime', 'Factory')
      """)
    let names = Set(try rows.map { try $0.decode(String.self, at: 0) })
    known.withLock { $0 = (names, now.advanced(by: .seconds(3600))) }
    return names
  }
}
