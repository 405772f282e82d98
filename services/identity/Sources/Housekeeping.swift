internal import Events
package import Postgres
internal import Primitives

/// Deletes, each hour, what no rule looks at any more.
package enum Housekeeping {
  static func run(_ database: Database) async {
    while !Task.isCancelled {
      do {
        try await sweep(database)
      } catch {
        if Task.isCancelled { return }
        Log.warning("housekeeping failed", ["error": .text("\(error)")])
      }
      await pause(.seconds(3600))
    }
  }

  package static func sweep(_ database: Database) async throws {
    // A lock lasts at most 24 h and is remembered for 24 h more.
    try await database.execute("DELETE FROM sign_in_throttles WHERE change_time < now() - interval '3 days'")
    // After 180 days no token of a session is good for anything.
    try await database.execute(
      """
      DELETE FROM sessions
      WHERE create_time < now() - interval '181 days' OR end_time < now() - interval '30 days'
      """)
    try await database.execute("DELETE FROM email_verifications WHERE create_time < now() - interval '30 days'")
  }
}
