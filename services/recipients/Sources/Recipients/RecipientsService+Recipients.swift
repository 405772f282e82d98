package import API
internal import Events
internal import Postgres
internal import Primitives
internal import Protobuf
package import RPC
internal import Sealing
internal import ServiceKit

extension RecipientsService {
  package func addRecipient(
    _ request: RecipientsV1.AddRecipientRequest, _ context: CallContext
  ) async throws -> RecipientsV1.AddRecipientResponse {
    let account = try context.account().accountID
    let fields = try RecipientRules.fields(
      name: request.name, email: request.email, phone: request.phone, relationship: request.relationship)
    let groups = try Fields.identifiers(request.groupIDs, "group_ids", max: RecipientRules.groupsOfOneMax)
    let channels = try RecipientRules.channels(
      request.promptChannels, phone: fields.phone, field: "prompt_channels")
    return try await requests.once(request.requestID, request, context) {
      let author = try await callingAuthor(account, context)
      try RecipientsService.require(fields, areNotOf: author)
      if !channels.isEmpty { try RecipientsService.requireVerified(author) }
      return author
    } _: { author, transaction in
      try await AccountLock.forChange(account, in: transaction)
      let store = RecipientStore(transaction)
      guard try await store.count(of: account) < RecipientRules.recipientsMax else {
        throw ServiceError(
          .resourceExhausted, "An account has at most \(RecipientRules.recipientsMax) recipients.",
          reason: "TOO_MANY_RECIPIENTS")
      }
      let id = Identifier()
      try await store.add(id, fields, of: account)
      for group in groups { try await GroupStore(transaction).join(id, group, of: account) }
      try await transaction.publish(
        RecipientsV1.RecipientAdded(accountID: "\(account)", recipientID: "\(id)"), subject: account,
        traceparent: context.traceparent)
      if !channels.isEmpty {
        try await prompt(id, fields, from: author, account: account, in: transaction, context)
      }
      return RecipientsV1.AddRecipientResponse(recipient: try await stored(id, of: account, store).wire)
    }
  }

  package func getRecipient(
    _ request: RecipientsV1.GetRecipientRequest, _ context: CallContext
  ) async throws -> RecipientsV1.GetRecipientResponse {
    let account = try context.account().accountID
    let id = try Fields.identifier(request.recipientID, "recipient_id")
    guard let recipient = try await RecipientStore.find(id, of: account, in: database) else {
      throw ServiceError.notFound("recipient")
    }
    return RecipientsV1.GetRecipientResponse(recipient: recipient.wire)
  }

  package func listRecipients(
    _ request: RecipientsV1.ListRecipientsRequest, _ context: CallContext
  ) async throws -> RecipientsV1.ListRecipientsResponse {
    let account = try context.account().accountID
    let pageSize = try Fields.pageSize(request.pageSize, default: 50, max: 200)
    let filter = try RecipientFilter(request)
    var arguments = request
    arguments.pageSize = 0
    arguments.pageToken = ""
    let scope = (caller: "\(account)", method: context.method.path, arguments: arguments.serialized())
    var cursor: RecipientCursor?
    if !request.pageToken.isEmpty {
      cursor = RecipientCursor(
        bytes: try pageTokens.open(
          request.pageToken, caller: scope.caller, method: scope.method, arguments: scope.arguments))
    }
    var page = try await RecipientStore.page(of: account, filter, after: cursor, limit: pageSize + 1, in: database)
    var next = ""
    if page.count > pageSize {
      page.removeLast()
      next = try pageTokens.seal(
        RecipientCursor(page[pageSize - 1], filter.order).bytes, caller: scope.caller, method: scope.method,
        arguments: scope.arguments)
    }
    return RecipientsV1.ListRecipientsResponse(
      recipients: page.map(\.wire), nextPageToken: next,
      totalSize: try await RecipientStore.count(of: account, filter, in: database))
  }

  package func updateRecipient(
    _ request: RecipientsV1.UpdateRecipientRequest, _ context: CallContext
  ) async throws -> RecipientsV1.UpdateRecipientResponse {
    let account = try context.account().accountID
    let id = try Fields.identifier(request.recipientID, "recipient_id")
    guard let new = request.recipient else { throw ServiceError.invalid("recipient", "is required") }
    let mask = try RecipientRules.mask(request.updateMask?.paths)
    return try await requests.once(request.requestID, request, context) {
      try await callingAuthor(account, context)
    } _: { author, transaction in
      try await AccountLock.forChange(account, in: transaction)
      let store = RecipientStore(transaction)
      let old = try await stored(id, of: account, store)
      let fields = try RecipientRules.fields(
        name: mask.contains("name") ? new.name : old.fields.name,
        email: mask.contains("email") ? new.email : old.fields.email,
        phone: mask.contains("phone") ? new.phone : old.fields.phone,
        relationship: mask.contains("relationship") ? new.relationship : old.fields.relationship.wire,
        prefix: "recipient.")
      let newAddress = fields.emailKey != old.fields.emailKey
      if newAddress { try RecipientsService.require(fields, areNotOf: author) }
      try await store.update(id, fields, newAddress: newAddress, revision: request.revision, of: account)
      try await transaction.publish(
        RecipientsV1.RecipientChanged(accountID: "\(account)", recipientID: "\(id)"), subject: account,
        traceparent: context.traceparent)
      if newAddress {
        try await PromptStore(transaction).void(id)
      }
      if newAddress, old.acceptance != .pending {
        try await transaction.publish(
          RecipientsV1.AcceptanceChanged(accountID: "\(account)", recipientID: "\(id)", acceptance: 1),
          subject: account, traceparent: context.traceparent)
      }
      return RecipientsV1.UpdateRecipientResponse(recipient: try await stored(id, of: account, store).wire)
    }
  }

  package func removeRecipient(
    _ request: RecipientsV1.RemoveRecipientRequest, _ context: CallContext
  ) async throws -> RecipientsV1.RemoveRecipientResponse {
    let account = try context.account().accountID
    let id = try Fields.identifier(request.recipientID, "recipient_id")
    return try await requests.once(request.requestID, request, context) { transaction in
      try await AccountLock.forChange(account, in: transaction)
      try await GroupStore(transaction).touch(having: id, of: account)
      guard try await RecipientStore(transaction).remove(id, of: account) else {
        throw ServiceError.notFound("recipient")
      }
      try await transaction.publish(
        RecipientsV1.RecipientRemoved(accountID: "\(account)", recipientID: "\(id)"), subject: account,
        traceparent: context.traceparent)
      return RecipientsV1.RemoveRecipientResponse()
    }
  }

  /// The recipient as stored; NOT_FOUND for another account's.
  func stored(_ id: Identifier, of account: Identifier, _ store: RecipientStore) async throws -> Recipient {
    guard let recipient = try await store.find(id, of: account) else { throw ServiceError.notFound("recipient") }
    return recipient
  }

  /// The author's own address cannot be a recipient's (OP-33).
  static func require(_ fields: RecipientFields, areNotOf author: IdentityV1.Account) throws(ServiceError) {
    if Normalisation.emailKey(author.email) == fields.emailKey {
      throw ServiceError.precondition("OWN_EMAIL", "This is your own address.")
    }
  }

  /// Prompts need a proved address of the author (OP-13).
  static func requireVerified(_ author: IdentityV1.Account) throws(ServiceError) {
    if !author.emailVerified {
      throw ServiceError.precondition(
        "EMAIL_NOT_VERIFIED", "Follow the link in the mail that was sent to you before you send prompts.")
    }
  }
}
