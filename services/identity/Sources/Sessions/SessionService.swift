package import API
internal import Events
internal import Postgres
internal import Primitives
package import RPC
internal import Sealing
internal import ServiceKit

extension IdentityService {
  package func logIn(
    _ request: IdentityV1.LogInRequest, _ context: CallContext
  ) async throws -> IdentityV1.LogInResponse {
    try await runtime.requests.once(
      request.requestID, request, context, prepare: { try await authenticate(request) },
      { IdentityV1.LogInResponse(session: try await openSession($0, in: $1)) })
  }

  private func openSession(_ proof: PasswordProof, in transaction: Transaction) async throws -> IdentityV1.Session {
    try await throttle.succeed(proof.throttleDigest, in: transaction)
    let accounts = AccountStore(transaction)
    guard let account = try await accounts.hold(proof.accountID), account.takesSignIns else {
      throw ServiceError.precondition("ACCOUNT_CLOSED", "This account takes no more sign-ins.")
    }
    if let hash = proof.strongerHash { try await accounts.setPasswordHash(hash, of: account.id) }
    try await ActivityLog(transaction).append(.signedIn, account.id)
    return try await tokens.open(account, in: transaction)
  }

  /// Checks the password. An unknown address takes the same steps as a wrong password.
  private func authenticate(_ request: IdentityV1.LogInRequest) async throws -> PasswordProof {
    var check = FieldCheck()
    if Normalisation.email(request.email) == nil { check.fail("email", "must be an email address") }
    let password = Secret(Normalisation.password(request.password))
    if password.reveal().isEmpty { check.fail("password", "must not be empty") }
    if password.reveal().utf8.count > PasswordRules.bytesMax { check.fail("password", "is too long") }
    try check.end()

    let emailKey = Normalisation.emailKey(request.email)
    let digest = try await throttle.digest(emailKey: emailKey)
    try await throttle.check(digest)
    let found = try await AccountReader(database: runtime.database).credentials(emailKey: emailKey)
    guard let found else {
      try await hasher.dummyVerify(password)
      throw try await failure(digest, emailKey)
    }
    guard try await hasher.verify(password, found.passwordHash) else { throw try await failure(digest, emailKey) }
    let strongerHash = hasher.needsRehash(found.passwordHash) ? try await hasher.hash(password) : nil
    return PasswordProof(accountID: found.id, throttleDigest: digest, strongerHash: strongerHash)
  }

  /// Counts the failure, and says what to answer.
  private func failure(_ digest: [UInt8], _ emailKey: String) async throws -> ServiceError {
    try await throttle.fail(digest, emailKey: emailKey)
    return ServiceError(
      .unauthenticated, "The email address or the password is wrong.", reason: "BAD_CREDENTIALS")
  }

  package func refresh(
    _ request: IdentityV1.RefreshRequest, _ context: CallContext
  ) async throws -> IdentityV1.RefreshResponse {
    let hash = LinkToken(request.refreshToken)?.hash
    do {
      return try await runtime.requests.once(request.requestID, request, context, replayFor: .seconds(60)) {
        transaction in
        guard let hash else { throw ServiceError.sessionEnded }
        return IdentityV1.RefreshResponse(session: try await rotate(hash, in: transaction))
      }
    } catch is SpentToken {
      try await endSession(ofSpent: hash)
    } catch let error as ServiceError where error.reason == "REQUEST_ID_SPENT" {
      // The right repeat, but too late to be a lost reply.
      try await endSession(ofSpent: hash)
    }
    throw ServiceError.sessionEnded
  }

  private func rotate(_ hash: [UInt8], in transaction: Transaction) async throws -> IdentityV1.Session {
    let sessions = SessionStore(transaction)
    guard let id = try await sessions.spendToken(hash) else {
      if try await sessions.session(ofToken: hash) != nil { throw SpentToken() }
      throw ServiceError.sessionEnded
    }
    guard let session = try await sessions.lock(id), session.isLive else { throw ServiceError.sessionEnded }
    try await sessions.touch(id)
    return try await tokens.pair(
      session: id, account: session.accountID, emailVerified: session.emailVerified, now: session.now,
      in: transaction)
  }

  /// In a transaction of its own: the call fails, its consequence stays.
  private func endSession(ofSpent hash: [UInt8]?) async throws {
    guard let hash else { return }
    try await runtime.database.transaction { transaction in
      let sessions = SessionStore(transaction)
      if let id = try await sessions.session(ofToken: hash) { try await sessions.end(id, .tokenReused) }
    }
  }

  package func logOut(
    _ request: IdentityV1.LogOutRequest, _ context: CallContext
  ) async throws -> IdentityV1.LogOutResponse {
    let caller = try context.account()
    return try await runtime.requests.once(request.requestID, request, context) { transaction in
      try await SessionStore(transaction).end(caller.sessionID, .loggedOut)
      return IdentityV1.LogOutResponse()
    }
  }
}

/// A right password.
private struct PasswordProof: Sendable {
  let accountID: Identifier
  let throttleDigest: [UInt8]
  /// The password hashed anew, when the stored hash is weaker than today's.
  let strongerHash: String?
}

/// A refresh token came a second time: somebody has a copy.
private struct SpentToken: Error {}

extension ServiceError {
  fileprivate static var sessionEnded: ServiceError {
    ServiceError(.unauthenticated, "The session has ended; sign in again.", reason: "SESSION_ENDED")
  }
}
