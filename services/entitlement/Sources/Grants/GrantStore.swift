internal import API
internal import Postgres
internal import Primitives

/// Reads of the grants, each a single statement.
struct GrantReader {
  let database: Database

  init(_ database: Database) {
    self.database = database
  }

  /// Where an account's entitlement stands, and since when it was granted; an account without a row never purchased.
  func read(_ account: Identifier) async throws -> (state: EntitlementV1.EntitlementState, grantTime: Instant?) {
    let rows = try await database.query("SELECT state, grant_time FROM grants WHERE account_id = \(account)")
    guard let row = rows.first else { return (.notPurchased, nil) }
    let (state, time) = try row.decode((Int32, Instant).self)
    return (EntitlementV1.EntitlementState(rawValue: state), time)
  }
}
