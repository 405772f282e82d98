internal import API
internal import Postgres
internal import Primitives
internal import Sealing

/// Opens sessions and makes their pairs of tokens.
struct SessionTokens: Sendable {
  let issuer: AccessTokenIssuer

  func open(_ account: Account, in transaction: Transaction) async throws -> IdentityV1.Session {
    let id = Identifier()
    let now = try await SessionStore(transaction).insert(id, of: account.id)
    return try await pair(
      session: id, account: account.id, emailVerified: account.emailVerified, now: now, in: transaction)
  }

  /// A new pair for a session whose older refresh token is spent.
  func pair(
    session: Identifier, account: Identifier, emailVerified: Bool, now: Instant, in transaction: Transaction
  ) async throws -> IdentityV1.Session {
    let refresh = LinkToken.random()
    try await SessionStore(transaction).insertToken(refresh.hash, of: session)
    let access = try issuer.issue(
      account: account, session: session, emailVerified: emailVerified, now: now,
      lifetime: SessionRules.accessLifetime)
    return IdentityV1.Session(
      sessionID: "\(session)", accountID: "\(account)", accessToken: access.reveal(),
      accessExpireTime: GoogleProtobuf.Timestamp(now.advanced(by: SessionRules.accessLifetime)),
      refreshToken: refresh.text.reveal())
  }
}
