package import Primitives

/// Who calls: decided once, before the handler runs.
package enum Caller: Sendable, Equatable {
  /// Nobody has proved who they are.
  case anonymous
  /// A person with a valid access token.
  case account(AccountCaller)
  /// Another service, by the name in its certificate, such as `vault`.
  case service(String)
}

/// A person who is signed in, as the access token says.
package struct AccountCaller: Sendable, Equatable {
  package let accountID: Identifier
  package let sessionID: Identifier
  package let emailVerified: Bool

  package init(accountID: Identifier, sessionID: Identifier, emailVerified: Bool) {
    self.accountID = accountID
    self.sessionID = sessionID
    self.emailVerified = emailVerified
  }
}
