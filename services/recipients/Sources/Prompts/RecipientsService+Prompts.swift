package import API
internal import Events
internal import Postgres
internal import Primitives
package import RPC
internal import Sealing
internal import ServiceKit

extension RecipientsService {
  package func sendPrompt(
    _ request: RecipientsV1.SendPromptRequest, _ context: CallContext
  ) async throws -> RecipientsV1.SendPromptResponse {
    let account = try context.account().accountID
    let id = try Fields.identifier(request.recipientID, "recipient_id")
    guard !request.channels.isEmpty else { throw ServiceError.invalid("channels", "needs at least one") }
    return try await requests.once(request.requestID, request, context) {
      try await callingAuthor(account, context)
    } _: { author, transaction in
      try await AccountLock.forChange(account, in: transaction)
      let store = RecipientStore(transaction)
      let recipient = try await stored(id, of: account, store)
      _ = try RecipientRules.channels(request.channels, phone: recipient.fields.phone, field: "channels")
      try RecipientsService.requireVerified(author)
      try await prompt(id, recipient.fields, from: author, account: account, in: transaction, context)
      return RecipientsV1.SendPromptResponse(recipient: try await stored(id, of: account, store).wire)
    }
  }

  package func getPrompt(
    _ request: RecipientsV1.GetPromptRequest, _ context: CallContext
  ) async throws -> RecipientsV1.GetPromptResponse {
    let prompt = try await found(request.token)
    let senderName = try await senderName(prompt, context)
    return RecipientsV1.GetPromptResponse(
      senderName: senderName, recipientName: prompt.recipientName, acceptance: prompt.acceptance.wire)
  }

  package func answerPrompt(
    _ request: RecipientsV1.AnswerPromptRequest, _ context: CallContext
  ) async throws -> RecipientsV1.AnswerPromptResponse {
    guard let answer = Acceptance(request.answer), answer != .pending else {
      throw ServiceError.invalid("answer", "must be accepted or declined")
    }
    return try await requests.once(request.requestID, request, context) {
      let prompt = try await found(request.token)
      return (prompt.account, try await senderName(prompt, context))
    } _: { prepared, transaction in
      let (account, senderName) = prepared
      try await AccountLock.forChange(account, in: transaction)
      // The address may have changed since: its new holder has not answered.
      guard let token = LinkToken(request.token), let prompt = try await PromptStore(transaction).find(token) else {
        throw ServiceError.notFound("link")
      }
      if try await PromptStore(transaction).answer(prompt.recipient, answer) {
        try await transaction.publish(
          RecipientsV1.AcceptanceChanged(
            accountID: "\(prompt.account)", recipientID: "\(prompt.recipient)", acceptance: answer.wire.rawValue),
          subject: prompt.account, traceparent: context.traceparent)
      }
      return RecipientsV1.AnswerPromptResponse(senderName: senderName, acceptance: answer.wire)
    }
  }

  /// Makes a link and mails it; no address is asked twice in 7 days (OP-30). A text provider does not exist yet: a prompt that asks for text only goes by mail too.
  func prompt(
    _ recipient: Identifier, _ fields: RecipientFields, from author: IdentityV1.Account, account: Identifier,
    in transaction: Transaction, _ context: CallContext
  ) async throws {
    let store = PromptStore(transaction)
    let key = try await dataKeys.key(for: DataKeys.serviceOwner, in: transaction)
    let address = key.authenticate(Array("prompted address".utf8) + Array(fields.emailKey.utf8))
    let wait = try await store.secondsUntilNext(account, address: address)
    if wait > 0 {
      throw ServiceError(
        .resourceExhausted, "A recipient can be asked again after 7 days.", reason: "PROMPT_TOO_SOON",
        retryAfter: .seconds(wait))
    }
    let token = LinkToken.random()
    try await store.add(token, for: recipient, of: account, address: address)
    try await courier.enqueue(
      NotificationsV1.SendRequest(
        requestID: "\(Identifier())", addressee: .init(name: fields.name, email: fields.email),
        content: .acceptancePrompt(
          .init(senderName: author.displayName, link: "\(publicURL)/prompt/\(token.text.reveal())"))),
      in: transaction)
    try await transaction.publish(
      RecipientsV1.PromptRequested(accountID: "\(account)", recipientID: "\(recipient)"), subject: account,
      traceparent: context.traceparent)
  }

  private func senderName(_ prompt: Prompt, _ context: CallContext) async throws -> String {
    guard let author = try await author(prompt.account, context) else { throw ServiceError.notFound("link") }
    return author.displayName
  }

  private func found(_ text: String) async throws -> Prompt {
    guard let token = LinkToken(text), let prompt = try await PromptStore.find(token, in: database) else {
      throw ServiceError.notFound("link")
    }
    return prompt
  }
}
