import API
import Primitives
import RPC
import Synchronization

/// Stands in for identity, recipients, vault and notifications, as far as delivery asks them: answers from what a test
/// sets, and remembers what was asked.
final class StandIns: Sendable {
  struct State: Sendable {
    var timeZone = "Europe/Berlin"
    var recipients: [RecipientsV1.Recipient] = []
    var groups: [RecipientsV1.Group] = []
    var messages: [VaultV1.ReadyMessage] = []
    /// How many messages a page of the vault's list holds.
    var pageSize = 100
    var content = VaultV1.ReadDeliveredResponse(type: .letter, title: "For you", body: "Dear **you**")
    /// What a method answers instead, by its name.
    var failures: [String: ServiceError] = [:]
    /// Accounts that identity does not know.
    var unknown: Set<Identifier> = []
    var reads: [VaultV1.ReadDeliveredRequest] = []
    var sends: [NotificationsV1.SendRequest] = []
  }

  private let stored = Mutex(State())

  var state: State { stored.withLock { $0 } }

  @discardableResult
  func set<R>(_ change: (inout sending State) -> sending R) -> sending R { stored.withLock { change(&$0) } }

  var neighbours: [String: [any Service]] {
    [
      "identity": [Directory(standIns: self)], "recipients": [Audience(standIns: self)],
      "vault": [Releases(standIns: self)], "notifications": [Sends(standIns: self)],
    ]
  }

  fileprivate func asked(_ method: String) throws -> State {
    let state = state
    if let failure = state.failures[method] { throw failure }
    return state
  }
}

private struct Directory: IdentityV1.DirectoryService {
  let standIns: StandIns

  func batchGetAccounts(
    _ request: IdentityV1.BatchGetAccountsRequest, _ context: CallContext
  ) async throws -> IdentityV1.BatchGetAccountsResponse {
    let state = try standIns.asked("batchGetAccounts")
    let known = request.accountIDs.filter { !state.unknown.contains(Identifier($0)!) }
    return .init(
      accounts: known.map { .init(accountID: $0, displayName: "Karl", timeZone: state.timeZone) })
  }

  func getSigningKeys(
    _ request: IdentityV1.GetSigningKeysRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSigningKeysResponse { throw ServiceError(.unimplemented, "not asked") }

  func findAccountsByEmail(
    _ request: IdentityV1.FindAccountsByEmailRequest, _ context: CallContext
  ) async throws -> IdentityV1.FindAccountsByEmailResponse { throw ServiceError(.unimplemented, "not asked") }

  func getSecurityQuestion(
    _ request: IdentityV1.GetSecurityQuestionRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSecurityQuestionResponse { throw ServiceError(.unimplemented, "not asked") }

  func checkSecurityAnswer(
    _ request: IdentityV1.CheckSecurityAnswerRequest, _ context: CallContext
  ) async throws -> IdentityV1.CheckSecurityAnswerResponse { throw ServiceError(.unimplemented, "not asked") }
}

private struct Audience: RecipientsV1.AudienceService {
  let standIns: StandIns

  func checkAudience(
    _ request: RecipientsV1.CheckAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.CheckAudienceResponse { throw ServiceError(.unimplemented, "not asked") }

  func freezeAudience(
    _ request: RecipientsV1.FreezeAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.FreezeAudienceResponse {
    let state = try standIns.asked("freezeAudience")
    return .init(recipients: state.recipients, groups: state.groups)
  }
}

private struct Releases: VaultV1.ReleaseService {
  let standIns: StandIns

  func listReady(
    _ request: VaultV1.ListReadyRequest, _ context: CallContext
  ) async throws -> VaultV1.ListReadyResponse {
    let state = try standIns.asked(request.pageToken.isEmpty ? "listReady" : "listReady next")
    let start = Int(request.pageToken) ?? 0
    let end = min(start + state.pageSize, state.messages.count)
    return .init(
      messages: Array(state.messages[start..<end]), nextPageToken: end < state.messages.count ? "\(end)" : "")
  }

  func readDelivered(
    _ request: VaultV1.ReadDeliveredRequest, _ context: CallContext
  ) async throws -> VaultV1.ReadDeliveredResponse {
    let content = try standIns.asked("readDelivered").content
    standIns.set { $0.reads.append(request) }
    return content
  }
}

private struct Sends: NotificationsV1.SendService {
  let standIns: StandIns

  func send(
    _ request: NotificationsV1.SendRequest, _ context: CallContext
  ) async throws -> NotificationsV1.SendResponse {
    _ = try standIns.asked("send")
    standIns.set { $0.sends.append(request) }
    return .init(notificationID: request.requestID)
  }
}
