package import API
internal import Postgres
internal import Primitives
package import RPC
package import Sealing
package import ServiceKit

/// What the other services need to know of accounts.
package struct DirectoryService: IdentityV1.DirectoryService {
  private static let batchMax = 1000

  private let reader: AccountReader
  private let config: IdentityConfig
  private let hasher: PasswordHasher

  package init(runtime: ServiceRuntime, config: IdentityConfig, hasher: PasswordHasher) {
    reader = AccountReader(database: runtime.database)
    self.config = config
    self.hasher = hasher
  }

  package func getSigningKeys(
    _ request: IdentityV1.GetSigningKeysRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSigningKeysResponse {
    IdentityV1.GetSigningKeysResponse(
      keys: config.verifyingKeys.map { IdentityV1.SigningKey(keyID: $0.keyID, publicKey: $0.raw) },
      issuer: config.issuer)
  }

  package func batchGetAccounts(
    _ request: IdentityV1.BatchGetAccountsRequest, _ context: CallContext
  ) async throws -> IdentityV1.BatchGetAccountsResponse {
    let ids = try Fields.identifiers(request.accountIDs, "account_ids", max: DirectoryService.batchMax)
    guard !ids.isEmpty else { throw ServiceError.invalid("account_ids", "must not be empty") }
    return IdentityV1.BatchGetAccountsResponse(accounts: try await reader.accounts(ids).map(IdentityV1.Account.init))
  }

  package func findAccountsByEmail(
    _ request: IdentityV1.FindAccountsByEmailRequest, _ context: CallContext
  ) async throws -> IdentityV1.FindAccountsByEmailResponse {
    guard (1...DirectoryService.batchMax).contains(request.emails.count) else {
      throw ServiceError.invalid("emails", "must have 1 to \(DirectoryService.batchMax) entries")
    }
    let keys = Dictionary(
      request.emails.map { ($0, Normalisation.emailKey($0)) }, uniquingKeysWith: { first, _ in first })
    let found = try await reader.verifiedAccounts(emailKeys: Array(Set(keys.values)))
    return IdentityV1.FindAccountsByEmailResponse(
      accounts: keys.compactMap { email, key in
        found[key].map { IdentityV1.EmailAccount(email: email, accountID: "\($0)") }
      })
  }

  package func getSecurityQuestion(
    _ request: IdentityV1.GetSecurityQuestionRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSecurityQuestionResponse {
    let stored = try await securityQuestion(request.accountID)
    return IdentityV1.GetSecurityQuestionResponse(question: SecurityQuestions.question(stored.questionID))
  }

  package func checkSecurityAnswer(
    _ request: IdentityV1.CheckSecurityAnswerRequest, _ context: CallContext
  ) async throws -> IdentityV1.CheckSecurityAnswerResponse {
    let stored = try await securityQuestion(request.accountID)
    let answer = Normalisation.answer(request.securityAnswer)
    guard answer.utf8.count <= PasswordRules.bytesMax else {
      return IdentityV1.CheckSecurityAnswerResponse(correct: false)
    }
    return IdentityV1.CheckSecurityAnswerResponse(
      correct: try await hasher.verify(Secret(answer), stored.answerHash))
  }

  private func securityQuestion(_ accountID: String) async throws -> (questionID: String, answerHash: String) {
    let id = try Fields.identifier(accountID, "account_id")
    guard let stored = try await reader.securityQuestion(id) else { throw ServiceError.notFound("account") }
    return stored
  }
}
