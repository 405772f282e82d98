internal import API
internal import Primitives
internal import RPC
internal import ServiceKit

/// What vault asks other services before a message becomes ready. One that is out of reach makes the save
/// UNAVAILABLE.
struct VaultNeighbours: Sendable {
  private static let timeout: Duration = .seconds(5)

  private let audience: RecipientsV1.AudienceServiceClient
  private let designations: ConfirmationV1.DesignationServiceClient
  private let directory: IdentityV1.DirectoryServiceClient

  init(_ runtime: ServiceRuntime) throws {
    audience = RecipientsV1.AudienceServiceClient(try runtime.neighbours.channel(to: "recipients"))
    designations = ConfirmationV1.DesignationServiceClient(try runtime.neighbours.channel(to: "confirmation"))
    directory = IdentityV1.DirectoryServiceClient(try runtime.neighbours.channel(to: "identity"))
  }

  /// Throws FAILED_PRECONDITION (NO_ADMINISTRATOR) while none is designated.
  func requireAdministrator(of owner: Identifier, _ context: CallContext) async throws {
    let request = ConfirmationV1.GetDesignationStateRequest(accountID: "\(owner)")
    let state = try await reaching { try await designations.getDesignationState(request, options(context)) }
    guard state.hasAdministrator else {
      throw ServiceError.precondition("NO_ADMINISTRATOR", "Designate an administrator before saving to the vault.")
    }
  }

  /// Throws INVALID_ARGUMENT naming every recipient and group that is not the owner's.
  func requireAudience(_ content: CheckedContent, of owner: Identifier, _ context: CallContext) async throws {
    let request = RecipientsV1.CheckAudienceRequest(
      accountID: "\(owner)", recipientIDs: content.recipients.map { "\($0.id)" },
      groupIDs: content.groups.map { "\($0.id)" })
    let response = try await reaching { try await audience.checkAudience(request, options(context)) }
    var violations = Violations()
    let recipients = Set(response.recipients.compactMap { Identifier($0.recipientID) })
    for entry in content.recipients where !recipients.contains(entry.id) {
      violations.add(entry.field, "is not one of your recipients")
    }
    let groups = Set(response.groupIDs.compactMap { Identifier($0) })
    for entry in content.groups where !groups.contains(entry.id) {
      violations.add(entry.field, "is not one of your groups")
    }
    try violations.check()
  }

  /// The author's zone, an IANA name.
  func timeZone(of owner: Identifier, _ context: CallContext) async throws -> String {
    let request = IdentityV1.BatchGetAccountsRequest(accountIDs: ["\(owner)"])
    let response = try await reaching { try await directory.batchGetAccounts(request, options(context)) }
    guard let account = response.accounts.first(where: { Identifier($0.accountID) == owner }) else {
      throw ServiceError.unauthenticated()
    }
    return account.timeZone
  }

  private func options(_ context: CallContext) -> CallOptions {
    var options = context.callOptions()
    options.timeout = VaultNeighbours.timeout
    return options
  }

  /// A neighbour's answer. Whatever keeps it from answering, the caller can only try again: a refusal of vault itself
  /// is a fault of the installation and must not look like one of the request.
  private func reaching<Response>(_ call: () async throws -> Response) async throws -> Response {
    do {
      return try await call()
    } catch let error as ServiceError where error.code != .cancelled {
      throw ServiceError.unavailable("This cannot be checked just now; try again.", cause: error)
    }
  }
}
