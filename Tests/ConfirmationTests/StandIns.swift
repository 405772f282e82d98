import API
import Primitives
import RPC
import Synchronization

/// Stands in for identity and recipients: knows the accounts and recipients that a test adds.
final class StandIns: Sendable {
  private struct State: Sendable {
    var accounts: [Identifier: IdentityV1.Account] = [:]
    var recipients: [String: RecipientsV1.Recipient] = [:]
    var answersAreThere = true
  }

  private let state = Mutex(State())

  var neighbours: [String: [any Service]] {
    ["identity": [Directory(standIns: self)], "recipients": [Audience(standIns: self)]]
  }

  func add(_ name: String, email: String) -> Identifier {
    let id = Identifier()
    state.withLock {
      $0.accounts[id] = .init(
        accountID: "\(id)", email: email, emailVerified: true, displayName: name, status: .active)
    }
    return id
  }

  func change(_ id: Identifier, _ change: (inout IdentityV1.Account) -> Void) {
    state.withLock { state in
      var account = state.accounts[id] ?? .init()
      change(&account)
      state.accounts[id] = account
    }
  }

  /// Somebody's recipient; returns the id.
  func addRecipient(of owner: Identifier, _ recipient: RecipientsV1.Recipient) -> String {
    var recipient = recipient
    if recipient.recipientID.isEmpty { recipient.recipientID = "\(Identifier())" }
    let stored = recipient
    state.withLock { $0.recipients["\(owner) \(stored.recipientID)"] = stored }
    return stored.recipientID
  }

  /// Whether security answers can be compared.
  func setAnswers(areThere: Bool) { state.withLock { $0.answersAreThere = areThere } }

  fileprivate func account(_ id: String) -> IdentityV1.Account? {
    state.withLock { state in Identifier(id).flatMap { state.accounts[$0] } }
  }

  fileprivate func recipient(_ id: String, of owner: String) -> RecipientsV1.Recipient? {
    state.withLock { $0.recipients["\(owner) \(id)"] }
  }

  fileprivate var answersAreThere: Bool { state.withLock { $0.answersAreThere } }
}

private struct Directory: IdentityV1.DirectoryService {
  let standIns: StandIns

  func batchGetAccounts(
    _ request: IdentityV1.BatchGetAccountsRequest, _ context: CallContext
  ) async throws -> IdentityV1.BatchGetAccountsResponse {
    .init(accounts: request.accountIDs.compactMap { standIns.account($0) })
  }

  func getSecurityQuestion(
    _ request: IdentityV1.GetSecurityQuestionRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSecurityQuestionResponse {
    guard let account = standIns.account(request.accountID) else { throw ServiceError.notFound("account") }
    return .init(question: .init(id: "q", text: "\(account.displayName)'s question?"))
  }

  func checkSecurityAnswer(
    _ request: IdentityV1.CheckSecurityAnswerRequest, _ context: CallContext
  ) async throws -> IdentityV1.CheckSecurityAnswerResponse {
    guard standIns.answersAreThere else {
      throw ServiceError(.resourceExhausted, "hashing is at its limit", reason: "POOL_BUSY")
    }
    return .init(correct: request.securityAnswer == ConfirmationFixture.answer)
  }

  func getSigningKeys(
    _ request: IdentityV1.GetSigningKeysRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSigningKeysResponse {
    throw ServiceError(.unimplemented, "not asked by these tests")
  }

  func findAccountsByEmail(
    _ request: IdentityV1.FindAccountsByEmailRequest, _ context: CallContext
  ) async throws -> IdentityV1.FindAccountsByEmailResponse {
    throw ServiceError(.unimplemented, "not asked by confirmation")
  }
}

private struct Audience: RecipientsV1.AudienceService {
  let standIns: StandIns

  func checkAudience(
    _ request: RecipientsV1.CheckAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.CheckAudienceResponse {
    .init(recipients: request.recipientIDs.compactMap { standIns.recipient($0, of: request.accountID) })
  }

  func freezeAudience(
    _ request: RecipientsV1.FreezeAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.FreezeAudienceResponse {
    throw ServiceError(.unimplemented, "not asked by confirmation")
  }
}
