package import API
internal import Postgres
internal import Primitives
package import RPC
package import ServiceKit

/// Who a message goes to, for the services that must know.
package struct AudienceService: RecipientsV1.AudienceService {
  private let database: Database

  package init(_ runtime: ServiceRuntime) {
    database = runtime.database
  }

  package func checkAudience(
    _ request: RecipientsV1.CheckAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.CheckAudienceResponse {
    let account = try Fields.identifier(request.accountID, "account_id")
    let recipients = try Fields.identifiers(
      request.recipientIDs, "recipient_ids", max: RecipientRules.recipientsMax)
    let groups = try Fields.identifiers(request.groupIDs, "group_ids", max: RecipientRules.groupsMax)
    let found = try await RecipientStore.all(of: account, among: recipients, in: database)
    let known = Set(try await GroupStore.all(of: account, in: database).map(\.id))
    return RecipientsV1.CheckAudienceResponse(
      recipients: found.map(\.wire), groupIDs: groups.filter { known.contains($0) }.map { "\($0)" })
  }

  package func freezeAudience(
    _ request: RecipientsV1.FreezeAudienceRequest, _ context: CallContext
  ) async throws -> RecipientsV1.FreezeAudienceResponse {
    let account = try Fields.identifier(request.accountID, "account_id")
    try await database.transaction { try await AccountLock.freeze(account, in: $0) }
    let recipients = try await RecipientStore.all(of: account, among: nil, in: database)
    let groups = try await GroupStore.all(of: account, in: database)
    return RecipientsV1.FreezeAudienceResponse(recipients: recipients.map(\.wire), groups: groups.map(\.wire))
  }
}
