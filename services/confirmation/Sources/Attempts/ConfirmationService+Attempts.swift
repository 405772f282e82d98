package import API
internal import Events
internal import Postgres
internal import Primitives
package import RPC
internal import Sealing
internal import ServiceKit

extension ConfirmationService {
  package func openAttempt(
    _ request: ConfirmationV1.OpenAttemptRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.OpenAttemptResponse {
    let designationID = try Fields.identifier(request.designationID, "designation_id")
    return try await requests.once(request.requestID, request, context) {
      let administrator = try await actor(context)
      let designation = try await designation(designationID, of: administrator)
      let owner = try await people.person(designation.account, context)
      let question = try await people.securityQuestion(administrator.account, context)
      return (administrator, designation, owner, question)
    } _: { prepared, transaction in
      let (administrator, designation, owner, question) = prepared
      try await DesignationStore(transaction).lock(owner.account)
      if try await ConfirmationStore(transaction).find(owner.account) != nil {
        throw ServiceError.precondition("ALREADY_CONFIRMED", "This passing is already confirmed.")
      }
      if owner.status == .deactivated {
        throw ServiceError.precondition("ACCOUNT_DEACTIVATED", "This account is deactivated.")
      }
      guard try await DesignationStore(transaction).isCurrent(designation) else {
        throw ServiceError.notFound("designation")
      }
      let attempts = AttemptStore(transaction)
      try await requireChallengeLeft(attempts, owner, administrator)
      try await endAttempts(of: designation, reason: "superseded", by: administrator.account, transaction, context)
      let attempt = Identifier()
      let code = AttemptRules.newCode()
      let key = try await dataKeys.key(for: DataKeys.serviceOwner, in: transaction)
      let expireTime = try await attempts.add(
        attempt, designation, administrator: administrator.account,
        codeDigest: key.authenticate(AttemptRules.codeMessage(code, attempt)))
      try await courier.enqueue(openingMails(code, administrator, owner), in: transaction)
      try await transaction.publish(
        ConfirmationV1.AttemptOpened(accountID: "\(owner.account)", attemptID: "\(attempt)"),
        subject: owner.account, traceparent: context.traceparent)
      try await AuditStore(transaction).add("attempt_opened", owner.account, by: administrator.account, attempt)
      return ConfirmationV1.OpenAttemptResponse(
        attemptID: "\(attempt)", explanation: AttemptRules.explanation, securityQuestion: question,
        challengeExpireTime: .init(expireTime), displayName: owner.name)
    }
  }

  package func answerChallenge(
    _ request: ConfirmationV1.AnswerChallengeRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.AnswerChallengeResponse {
    let id = try Fields.identifier(request.attemptID, "attempt_id")
    return try await requests.once(request.requestID, request, context) {
      let administrator = try await actor(context)
      let (attempt, now) = try await attempt(id, of: administrator)
      try AttemptRules.requireAnswerable(attempt, now: now)
      try await judge(request, attempt, context)
      return attempt
    } _: { attempt, transaction in
      let expireTime = try await AttemptStore(transaction).pass(attempt.id)
      try await AuditStore(transaction).add("challenge_passed", attempt.account, by: attempt.administrator, attempt.id)
      return ConfirmationV1.AnswerChallengeResponse(confirmExpireTime: .init(expireTime))
    }
  }

  package func confirmPassing(
    _ request: ConfirmationV1.ConfirmPassingRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.ConfirmPassingResponse {
    let id = try Fields.identifier(request.attemptID, "attempt_id")
    return try await requests.once(request.requestID, request, context) {
      let administrator = try await actor(context)
      let (attempt, _) = try await attempt(id, of: administrator)
      let owner = try await people.person(attempt.account, context)
      guard AttemptRules.isName(request.typedName, owner.name) else {
        throw ServiceError.invalid("typed_name", "is not the person's name")
      }
      return (administrator, owner)
    } _: { prepared, transaction in
      let (administrator, owner) = prepared
      try await DesignationStore(transaction).lock(owner.account)
      guard let (attempt, now) = try await AttemptStore(transaction).find(id) else {
        throw ServiceError.notFound("attempt")
      }
      if let first = try await ConfirmationStore(transaction).find(owner.account) { return response(first) }
      try AttemptRules.requireConfirmable(attempt, now: now)
      return response(try await record(attempt, administrator, owner, transaction, context))
    }
  }

  package func cancelAttempt(
    _ request: ConfirmationV1.CancelAttemptRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.CancelAttemptResponse {
    let id = try Fields.identifier(request.attemptID, "attempt_id")
    return try await requests.once(request.requestID, request, context) {
      try await attempt(id, of: try await actor(context)).attempt
    } _: { attempt, transaction in
      // The lock of a confirmation: either of the two comes first and the other one sees it.
      try await DesignationStore(transaction).lock(attempt.account)
      if try await ConfirmationStore(transaction).find(attempt.account) != nil {
        throw ServiceError.precondition("ALREADY_CONFIRMED", "This passing is already confirmed.")
      }
      if try await AttemptStore(transaction).close(id, reason: "cancelled") {
        try await ended(id, of: attempt.account, "attempt_cancelled", by: attempt.administrator, transaction, context)
      }
      return ConfirmationV1.CancelAttemptResponse()
    }
  }

  /// Ends the open attempts of a designation without a confirmation.
  func endAttempts(
    of designation: Designation, reason: String, by actor: Identifier, _ transaction: Transaction,
    _ context: CallContext
  ) async throws {
    for attempt in try await AttemptStore(transaction).close(designation: designation.id, reason: reason) {
      try await ended(attempt, of: designation.account, "attempt_ended", by: actor, transaction, context)
    }
  }

  private func ended(
    _ attempt: Identifier, of account: Identifier, _ entry: String, by actor: Identifier, _ transaction: Transaction,
    _ context: CallContext
  ) async throws {
    try await transaction.publish(
      ConfirmationV1.AttemptCancelled(accountID: "\(account)", attemptID: "\(attempt)"), subject: account,
      traceparent: context.traceparent)
    try await AuditStore(transaction).add(entry, account, by: actor, attempt)
  }

  /// A designation in force whose administrator is this person; anything else is NOT_FOUND.
  private func designation(_ id: Identifier, of administrator: Person) async throws -> Designation {
    guard let designation = try await DesignationStore.find(id, in: database),
      designation.role == .administrator, designation.designee.emailKey == administrator.emailKey,
      designation.account != administrator.account
    else { throw ServiceError.notFound("designation") }
    return designation
  }

  /// An attempt that this person opened and whose designation is still in force; anything else is NOT_FOUND.
  private func attempt(_ id: Identifier, of administrator: Person) async throws -> (attempt: Attempt, now: Instant) {
    guard let (attempt, now) = try await AttemptStore.find(id, in: database),
      attempt.administrator == administrator.account
    else { throw ServiceError.notFound("attempt") }
    _ = try await designation(attempt.designation, of: administrator)
    return (attempt, now)
  }

  private func requireChallengeLeft(_ attempts: AttemptStore, _ owner: Person, _ administrator: Person) async throws {
    let recent = try await attempts.recent(owner.account, administrator.account)
    guard recent.count >= AttemptRules.challengesPerDay else { return }
    throw ServiceError(
      .resourceExhausted, "Three attempts were begun within a day; wait before the next.",
      reason: "TOO_MANY_CHALLENGES", retryAfter: .seconds(max(1, recent.waitSeconds)))
  }

  /// Takes a try and judges both parts together. A wrong answer stays counted; one that could not be judged does not.
  private func judge(
    _ request: ConfirmationV1.AnswerChallengeRequest, _ attempt: Attempt, _ context: CallContext
  ) async throws {
    guard try await AttemptStore.takeTry(attempt.id, in: database) else {
      throw ServiceError.precondition("CHALLENGE_SPENT", "All tries are used; begin a new attempt.")
    }
    let isAnswer: Bool
    let isCode: Bool
    do {
      let key = try await dataKeys.serviceKey(in: database)
      isCode = constantTimeEqual(
        key.authenticate(AttemptRules.codeMessage(request.code, attempt.id)), attempt.codeDigest)
      isAnswer = try await people.isAnswer(request.securityAnswer, of: attempt.administrator, context)
    } catch {
      try await AttemptStore.giveTryBack(attempt.id, in: database)
      throw error
    }
    guard isCode, isAnswer else {
      throw ServiceError(
        .invalidArgument, "The answer and the code do not both fit.", reason: "CHALLENGE_FAILED")
    }
  }

  private func openingMails(_ code: String, _ administrator: Person, _ owner: Person) -> [NotificationsV1.SendRequest] {
    [
      NotificationsV1.SendRequest(
        requestID: "\(Identifier())", addressee: .init(name: administrator.name, email: administrator.email),
        content: .challengeCode(.init(code: code, subjectName: owner.name))),
      NotificationsV1.SendRequest(
        requestID: "\(Identifier())",
        addressee: .init(name: owner.name, email: owner.email, accountID: "\(owner.account)"),
        content: .attemptAlert(.init(administratorName: administrator.name))),
    ]
  }

  /// Writes the record, signs the statement and starts delivery, all in one transaction.
  private func record(
    _ attempt: Attempt, _ administrator: Person, _ owner: Person, _ transaction: Transaction, _ context: CallContext
  ) async throws -> Confirmation {
    let store = ConfirmationStore(transaction)
    let confirmation = Confirmation(
      id: Identifier(), account: owner.account, administrator: administrator.account,
      confirmTime: try await store.now())
    let statement = try StatementRules.sign(confirmation, with: signingKey)
    try await store.add(confirmation, attempt: attempt, statement: statement)
    guard try await AttemptStore(transaction).close(attempt.id, reason: "confirmed") else {
      throw ServiceError.precondition("ATTEMPT_CLOSED", "The attempt has ended; begin a new one.")
    }
    try await transaction.publish(
      ConfirmationV1.PassingConfirmed(
        accountID: "\(owner.account)", confirmationID: "\(confirmation.id)",
        administratorID: "\(administrator.account)", statement: statement),
      subject: owner.account, traceparent: context.traceparent)
    let backup = try await DesignationStore(transaction).current(of: owner.account).first { $0.role == .backup }
    var told = [(administrator.name, administrator.email), (owner.name, owner.email)]
    if let backup { told.append((backup.designee.name, backup.designee.email)) }
    try await courier.enqueue(
      told.map { name, email in
        NotificationsV1.SendRequest(
          requestID: "\(Identifier())", addressee: .init(name: name, email: email),
          content: .passingNotice(.init(subjectName: owner.name)))
      }, in: transaction)
    try await AuditStore(transaction).add(
      "passing_confirmed", owner.account, by: administrator.account, confirmation.id)
    return confirmation
  }

  private func response(_ confirmation: Confirmation) -> ConfirmationV1.ConfirmPassingResponse {
    ConfirmationV1.ConfirmPassingResponse(
      confirmTime: .init(confirmation.confirmTime), summary: AttemptRules.summary)
  }
}
