package import API
internal import Events
internal import Postgres
internal import Primitives
internal import Protobuf
package import RPC
internal import Sealing
internal import ServiceKit

extension VaultService {
  package func saveDraft(
    _ request: VaultV1.SaveDraftRequest, _ context: CallContext
  ) async throws -> VaultV1.SaveDraftResponse {
    let owner = try context.account().accountID
    let content = try MessageRules.check(request.content, as: .draft)
    let target = try SaveTarget(request.messageID, request.revision, field: "message_id")
    var response = try await runtime.requests.once(request.requestID, request, context) { transaction in
      let saved = try await save(content, as: .draft, over: target, of: owner, context, transaction)
      return VaultV1.SaveDraftResponse(message: saved.proto())
    }
    response.message?.content?.body = request.content?.body ?? ""
    return response
  }

  package func saveToVault(
    _ request: VaultV1.SaveToVaultRequest, _ context: CallContext
  ) async throws -> VaultV1.SaveToVaultResponse {
    let owner = try context.account().accountID
    let target = try SaveTarget(request.messageID, request.revision, field: "message_id")
    var response = try await runtime.requests.once(
      request.requestID, request, context,
      prepare: {
        _ = try context.verifiedAccount()
        let content = try MessageRules.check(request.content, as: .ready)
        try await checkWithNeighbours(content, of: owner, context)
        return content
      },
      { (content: CheckedContent, transaction: Transaction) in
        let saved = try await save(content, as: .ready, over: target, of: owner, context, transaction)
        return VaultV1.SaveToVaultResponse(message: saved.proto())
      })
    response.message?.content?.body = request.content?.body ?? ""
    return response
  }

  package func getMessage(
    _ request: VaultV1.GetMessageRequest, _ context: CallContext
  ) async throws -> VaultV1.GetMessageResponse {
    let owner = try context.account().accountID
    let id = try Fields.identifier(request.messageID, "message_id")
    guard let (message, sealed) = try await MessageReader(runtime.database).read(id, of: owner) else {
      throw ServiceError.notFound("message")
    }
    let body = try await open(sealed, StoredMessage.binding(id, owner, message.status), of: owner)
    return VaultV1.GetMessageResponse(message: message.proto(body: body))
  }

  package func listMessages(
    _ request: VaultV1.ListMessagesRequest, _ context: CallContext
  ) async throws -> VaultV1.ListMessagesResponse {
    let owner = try context.account().accountID
    let size = try Fields.pageSize(request.pageSize, default: 20, max: 200)
    let filter = try MessageFilter(request)
    let scope = PageScope(runtime.pageTokens, context, arguments: request.withoutPage)
    let cursor = try scope.open(request.pageToken)
    let found = try await MessageReader(runtime.database).list(of: owner, filter, after: cursor, limit: size + 1)
    let page = try MessagePage(found, size: size, scope) { $0.proto() }
    return VaultV1.ListMessagesResponse(messages: page.entries, nextPageToken: page.nextToken)
  }

  package func getSummary(
    _ request: VaultV1.GetSummaryRequest, _ context: CallContext
  ) async throws -> VaultV1.GetSummaryResponse {
    let counts = try await MessageReader(runtime.database).summary(of: try context.account().accountID)
    return VaultV1.GetSummaryResponse(
      total: Int32(counts.total), drafts: Int32(counts.drafts), ready: Int32(counts.ready))
  }

  package func deleteMessage(
    _ request: VaultV1.DeleteMessageRequest, _ context: CallContext
  ) async throws -> VaultV1.DeleteMessageResponse {
    let owner = try context.account().accountID
    let id = try Fields.identifier(request.messageID, "message_id")
    return try await runtime.requests.once(request.requestID, request, context) { transaction in
      try await AccountStore(transaction).lockOpen(owner)
      let store = MessageStore(transaction)
      guard let message = try await store.find(id, of: owner) else { throw ServiceError.notFound("message") }
      guard message.revision == request.revision else { throw ServiceError.revisionMismatch() }
      try await store.delete(id)
      try await transaction.publish(
        VaultV1.MessageDeleted(accountID: "\(owner)", messageID: "\(id)"), subject: owner,
        traceparent: context.traceparent)
      return VaultV1.DeleteMessageResponse()
    }
  }

  private func checkWithNeighbours(
    _ content: CheckedContent, of owner: Identifier, _ context: CallContext
  ) async throws {
    async let administrator: Void = neighbours.requireAdministrator(of: owner, context)
    async let audience: Void = neighbours.requireAudience(content, of: owner, context)
    if case .date(let date, let minute) = content.condition {
      let zone = try await neighbours.timeZone(of: owner, context)
      guard try await MessageReader(runtime.database).isInFuture(date, minute: minute, zone: zone) else {
        throw ServiceError.invalid("content.delivery_condition.specific_date", "must be in the future")
      }
    }
    _ = try await (audience, administrator)
  }

  private func save(
    _ content: CheckedContent, as status: VaultV1.MessageStatus, over target: SaveTarget, of owner: Identifier,
    _ context: CallContext, _ transaction: Transaction
  ) async throws -> StoredMessage {
    try await AccountStore(transaction).lockOpen(owner)
    let store = MessageStore(transaction)
    let key = try await runtime.dataKeys.key(for: owner, in: transaction)
    let saved: StoredMessage
    switch target {
    case .new:
      guard try await store.count(of: owner) < MessageRules.messagesMax else {
        throw ServiceError(.resourceExhausted, "The vault is full; delete a message first.", reason: "VAULT_FULL")
      }
      let id = Identifier()
      let sealed = try key.seal(Array(content.body.utf8), StoredMessage.binding(id, owner, status))
      saved = try await store.insert(id, of: owner, content, as: status, sealed: sealed)
    case .existing(let id, let revision):
      guard let stored = try await store.find(id, of: owner) else { throw ServiceError.notFound("message") }
      try MessageRules.checkReplacement(
        of: stored.type, revision: stored.revision, by: content, revision: revision)
      let sealed = try key.seal(Array(content.body.utf8), StoredMessage.binding(id, owner, status))
      saved = try await store.update(id, content, as: status, sealed: sealed)
    }
    try await transaction.publish(
      VaultV1.MessageSaved(accountID: "\(owner)", messageID: "\(saved.id)", ready: status == .ready), subject: owner,
      traceparent: context.traceparent)
    return saved
  }

  /// The text of something sealed with the owner's key.
  func open(_ sealed: [UInt8], _ binding: Binding, of owner: Identifier) async throws -> String {
    guard let key = try await runtime.dataKeys.existingKey(for: owner, in: runtime.database) else {
      throw ServiceError.internal(cause: SealingError.unknownKey)
    }
    return String(decoding: try key.open(sealed, binding), as: UTF8.self)
  }
}

extension MessageFilter {
  fileprivate init(_ request: VaultV1.ListMessagesRequest) throws(ServiceError) {
    var violations = Violations()
    if !VaultV1.MessageStatus.allCases.contains(request.status) { violations.add("status", "is unknown") }
    if !VaultV1.MessageType.allCases.contains(request.type) { violations.add("type", "is unknown") }
    status = request.status == .unspecified ? nil : request.status.rawValue
    type = request.type == .unspecified ? nil : request.type.rawValue
    let recipient = violations.attempt { () throws(ServiceError) in
      try Fields.optionalIdentifier(request.recipientID, "recipient_id")
    }
    self.recipient = recipient ?? nil
    search =
      violations.attempt { () throws(ServiceError) in
        try Normalisation.line(request.search, field: "search", lengths: 0...MessageRules.titleCharactersMax)
      } ?? ""
    try violations.check()
  }
}

extension VaultV1.ListMessagesRequest {
  /// What a page token is bound to.
  fileprivate var withoutPage: [UInt8] {
    var copy = self
    copy.pageSize = 0
    copy.pageToken = ""
    return copy.serialized()
  }
}
