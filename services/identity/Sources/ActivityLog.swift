package import Postgres
package import Primitives

/// What happened to an account, for the activity log (ID-29): names and times, append-only.
package struct ActivityLog: Sendable {
  package enum Event: String, Sendable {
    case accountRegistered = "account_registered"
    case emailVerified = "email_verified"
    case signedIn = "signed_in"
    case signInFailed = "sign_in_failed"
    case accountClosed = "account_closed"
  }

  private let transaction: Transaction

  package init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  package func append(_ event: Event, _ accountID: Identifier) async throws {
    try await transaction.execute(
      "INSERT INTO activity (account_id, event) VALUES (\(accountID), \(event.rawValue))")
  }

  /// The same for the account that holds an address; one statement whether there is one or not.
  package func append(_ event: Event, emailKey: String) async throws {
    try await transaction.execute(
      """
      INSERT INTO activity (account_id, event)
      SELECT account_id, \(event.rawValue) FROM accounts WHERE email_key = \(emailKey)
      """)
  }
}
