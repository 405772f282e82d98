package import API
package import Events
package import Postgres
internal import Primitives
internal import ServiceKit

/// What identity does when others tell of something. It publishes AccountRegistered, EmailVerified and AccountClosed.
package enum IdentityEvents {
  package static func confirmation(_ subscription: Subscription) -> Subscription {
    var subscription = subscription
    subscription.on(ConfirmationV1.PassingConfirmed.self, passingConfirmed)
    return subscription
  }

  /// Closes the account: no more sign-ins, every session ends. Once; an account that is not ours is passed over.
  package static func passingConfirmed(
    _ event: ConfirmationV1.PassingConfirmed, _ transaction: Transaction
  ) async throws {
    let accountID = try Fields.identifier(event.accountID, "account_id")
    guard try await AccountStore(transaction).close(accountID) else { return }
    try await SessionStore(transaction).endAll(of: accountID, .accountClosed)
    try await ActivityLog(transaction).append(.accountClosed, accountID)
    try await transaction.publish(IdentityV1.AccountClosed(accountID: "\(accountID)"), subject: accountID)
  }
}
