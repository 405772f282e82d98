import API
import Primitives
import RPC
import Synchronization

/// Stands in for recipients, confirmation and identity, as far as vault asks them: answers from what a test sets.
final class StandIns: Sendable {
  struct State: Sendable {
    var recipients: Set<Identifier> = []
    var groups: Set<Identifier> = []
    var hasAdministrator = true
    var timeZone = "Europe/Berlin"
    /// How often anything was asked.
    var callCount = 0
  }

  private let stored = Mutex(State())

  var state: State { stored.withLock { $0 } }

  func set(_ change: (inout State) -> Void) { stored.withLock { change(&$0) } }

  var neighbours: [String: [any Service]] {
    [
      "recipients": [Audience(standIns: self)], "confirmation": [Designations(standIns: self)],
      "identity": [Directory(standIns: self)],
    ]
  }

  fileprivate func asked() -> State {
    stored.withLock { state in
      state.callCount += 1
      return state
    }
  }
}

private struct Audience: RecipientsV1.AudienceService {
  let standIns: StandIns

  func checkAudience(
    _ request: RecipientsV1.CheckAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.CheckAudienceResponse {
    let state = standIns.asked()
    let recipients = request.recipientIDs.filter { state.recipients.contains(Identifier($0)!) }
    return .init(
      recipients: recipients.map { RecipientsV1.Recipient(recipientID: $0) },
      groupIDs: request.groupIDs.filter { state.groups.contains(Identifier($0)!) })
  }

  func freezeAudience(
    _ request: RecipientsV1.FreezeAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.FreezeAudienceResponse {
    throw ServiceError(.unimplemented, "not asked by vault")
  }
}

private struct Designations: ConfirmationV1.DesignationService {
  let standIns: StandIns

  func getDesignationState(
    _ request: ConfirmationV1.GetDesignationStateRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.GetDesignationStateResponse {
    .init(hasAdministrator: standIns.asked().hasAdministrator)
  }
}

private struct Directory: IdentityV1.DirectoryService {
  let standIns: StandIns

  func batchGetAccounts(
    _ request: IdentityV1.BatchGetAccountsRequest, _ context: CallContext
  ) async throws -> IdentityV1.BatchGetAccountsResponse {
    let zone = standIns.asked().timeZone
    return .init(accounts: request.accountIDs.map { IdentityV1.Account(accountID: $0, timeZone: zone) })
  }

  func getSigningKeys(
    _ request: IdentityV1.GetSigningKeysRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSigningKeysResponse {
    throw ServiceError(.unimplemented, "not asked by these tests")
  }

  func findAccountsByEmail(
    _ request: IdentityV1.FindAccountsByEmailRequest, _ context: CallContext
  ) async throws -> IdentityV1.FindAccountsByEmailResponse {
    throw ServiceError(.unimplemented, "not asked by vault")
  }

  func getSecurityQuestion(
    _ request: IdentityV1.GetSecurityQuestionRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSecurityQuestionResponse {
    throw ServiceError(.unimplemented, "not asked by vault")
  }

  func checkSecurityAnswer(
    _ request: IdentityV1.CheckSecurityAnswerRequest, _ context: CallContext
  ) async throws -> IdentityV1.CheckSecurityAnswerResponse {
    throw ServiceError(.unimplemented, "not asked by vault")
  }
}
