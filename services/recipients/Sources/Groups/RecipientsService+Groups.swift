package import API
internal import Events
internal import Postgres
internal import Primitives
package import RPC
internal import Sealing
internal import ServiceKit

extension RecipientsService {
  package func createGroup(
    _ request: RecipientsV1.CreateGroupRequest, _ context: CallContext
  ) async throws -> RecipientsV1.CreateGroupResponse {
    let account = try context.account().accountID
    let name = try Normalisation.line(request.name, field: "name", lengths: 1...80)
    let members = try Fields.identifiers(request.recipientIDs, "recipient_ids", max: RecipientRules.recipientsMax)
    return try await requests.once(request.requestID, request, context) { transaction in
      try await AccountLock.forChange(account, in: transaction)
      let store = GroupStore(transaction)
      guard try await store.count(of: account) < RecipientRules.groupsMax else {
        throw ServiceError(
          .resourceExhausted, "An account has at most \(RecipientRules.groupsMax) groups.", reason: "TOO_MANY_GROUPS")
      }
      let id = Identifier()
      try await store.add(id, name: name, nameKey: Normalisation.answer(name), of: account)
      try await store.set(members, of: id, account: account)
      try await changed(id, of: account, in: transaction, context)
      return RecipientsV1.CreateGroupResponse(group: try await stored(id, of: account, store).wire)
    }
  }

  package func getGroup(
    _ request: RecipientsV1.GetGroupRequest, _ context: CallContext
  ) async throws -> RecipientsV1.GetGroupResponse {
    let account = try context.account().accountID
    let id = try Fields.identifier(request.groupID, "group_id")
    guard let group = try await GroupStore.find(id, of: account, in: database) else {
      throw ServiceError.notFound("group")
    }
    return RecipientsV1.GetGroupResponse(group: group.wire)
  }

  package func listGroups(
    _ request: RecipientsV1.ListGroupsRequest, _ context: CallContext
  ) async throws -> RecipientsV1.ListGroupsResponse {
    let groups = try await GroupStore.all(of: try context.account().accountID, in: database)
    return RecipientsV1.ListGroupsResponse(groups: groups.map(\.wire))
  }

  package func updateGroup(
    _ request: RecipientsV1.UpdateGroupRequest, _ context: CallContext
  ) async throws -> RecipientsV1.UpdateGroupResponse {
    let account = try context.account().accountID
    let id = try Fields.identifier(request.groupID, "group_id")
    let name = try Normalisation.line(request.name, field: "name", lengths: 1...80)
    let members = try Fields.identifiers(request.recipientIDs, "recipient_ids", max: RecipientRules.recipientsMax)
    return try await requests.once(request.requestID, request, context) { transaction in
      try await AccountLock.forChange(account, in: transaction)
      let store = GroupStore(transaction)
      _ = try await stored(id, of: account, store)
      try await store.rename(
        id, name: name, nameKey: Normalisation.answer(name), revision: request.revision, of: account)
      try await store.set(members, of: id, account: account)
      try await changed(id, of: account, in: transaction, context)
      return RecipientsV1.UpdateGroupResponse(group: try await stored(id, of: account, store).wire)
    }
  }

  package func deleteGroup(
    _ request: RecipientsV1.DeleteGroupRequest, _ context: CallContext
  ) async throws -> RecipientsV1.DeleteGroupResponse {
    let account = try context.account().accountID
    let id = try Fields.identifier(request.groupID, "group_id")
    return try await requests.once(request.requestID, request, context) { transaction in
      try await AccountLock.forChange(account, in: transaction)
      guard try await GroupStore(transaction).remove(id, of: account) else { throw ServiceError.notFound("group") }
      try await changed(id, of: account, in: transaction, context, deleted: true)
      return RecipientsV1.DeleteGroupResponse()
    }
  }

  private func stored(_ id: Identifier, of account: Identifier, _ store: GroupStore) async throws -> Group {
    guard let group = try await store.find(id, of: account) else { throw ServiceError.notFound("group") }
    return group
  }

  private func changed(
    _ id: Identifier, of account: Identifier, in transaction: Transaction, _ context: CallContext,
    deleted: Bool = false
  ) async throws {
    try await transaction.publish(
      RecipientsV1.GroupChanged(accountID: "\(account)", groupID: "\(id)", deleted: deleted), subject: account,
      traceparent: context.traceparent)
  }
}
