internal import API
internal import Postgres
internal import Primitives

/// An account as others may see it; what proves its owner stays in the database.
struct Account: Sendable, Equatable {
  let id: Identifier
  let email: String
  let emailVerified: Bool
  let displayName: String
  let timeZone: String
  let status: AccountStatus
  let passingConfirmed: Bool
  let createTime: Instant

  /// Whether it takes sign-ins (OP-16).
  var takesSignIns: Bool { status == .active && !passingConfirmed }

  static let columns: Query =
    """
    account_id, email, email_verified_time IS NOT NULL, display_name, time_zone, status,
    passing_confirmed_time IS NOT NULL, create_time
    """

  /// Reads `columns`.
  init(_ row: Row) throws {
    let status: String
    (id, email, emailVerified, displayName, timeZone, status, passingConfirmed, createTime) = try row.decode(
      (Identifier, String, Bool, String, String, String, Bool, Instant).self)
    self.status = AccountStatus(rawValue: status) ?? .suspended
  }
}

enum AccountStatus: String, Sendable {
  case active, suspended, deactivated
}

extension IdentityV1.Account {
  init(_ account: Account) {
    let status: IdentityV1.AccountStatus =
      switch account.status {
      case .active: .active
      case .suspended: .suspended
      case .deactivated: .deactivated
      }
    self.init(
      accountID: "\(account.id)", email: account.email, emailVerified: account.emailVerified,
      displayName: account.displayName, timeZone: account.timeZone, status: status,
      createTime: GoogleProtobuf.Timestamp(account.createTime))
  }
}
