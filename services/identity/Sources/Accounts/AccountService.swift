package import API
internal import Events
internal import Postgres
internal import Primitives
package import RPC
internal import Sealing
internal import ServiceKit

extension IdentityService {
  package func listSecurityQuestions(
    _ request: IdentityV1.ListSecurityQuestionsRequest, _ context: CallContext
  ) async throws -> IdentityV1.ListSecurityQuestionsResponse {
    IdentityV1.ListSecurityQuestionsResponse(questions: SecurityQuestions.all)
  }

  package func register(
    _ request: IdentityV1.RegisterRequest, _ context: CallContext
  ) async throws -> IdentityV1.RegisterResponse {
    try await runtime.requests.once(
      request.requestID, request, context, prepare: { try await check(request) },
      { try await insert($0, in: $1, context) })
  }

  private func check(_ request: IdentityV1.RegisterRequest) async throws -> HashedRegistration {
    let registration = try Registration(
      request, termsVersion: try await LegalReader(database: runtime.database).currentVersion("terms"),
      timeZones: try await timeZones.names())
    async let passwordHash = hasher.hash(registration.password)
    async let answerHash = hasher.hash(registration.answer)
    return try await HashedRegistration(
      registration: registration, passwordHash: passwordHash, answerHash: answerHash)
  }

  private func insert(
    _ hashed: HashedRegistration, in transaction: Transaction, _ context: CallContext
  ) async throws -> IdentityV1.RegisterResponse {
    let accounts = AccountStore(transaction)
    let account = try await accounts.insert(
      hashed.registration, passwordHash: hashed.passwordHash, answerHash: hashed.answerHash)
    try await accounts.acceptTerms(account.id, version: hashed.registration.termsVersion)
    try await ActivityLog(transaction).append(.accountRegistered, account.id)
    try await mailVerification(to: account, in: transaction)
    try await transaction.publish(
      IdentityV1.AccountRegistered(accountID: "\(account.id)"), subject: account.id,
      traceparent: context.traceparent)
    return IdentityV1.RegisterResponse(
      account: IdentityV1.Account(account), session: try await tokens.open(account, in: transaction))
  }

  package func getAccount(
    _ request: IdentityV1.GetAccountRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetAccountResponse {
    let caller = try context.account()
    guard let account = try await AccountReader(database: runtime.database).account(caller.accountID) else {
      throw ServiceError.notFound("account")
    }
    return IdentityV1.GetAccountResponse(account: IdentityV1.Account(account))
  }
}

private struct HashedRegistration: Sendable {
  let registration: Registration
  let passwordHash: String
  let answerHash: String
}
