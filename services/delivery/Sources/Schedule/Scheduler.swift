internal import API
internal import Events
internal import Postgres
internal import Primitives
internal import RPC
internal import ServiceKit

/// Takes up the messages of each confirmed passing: asks vault, recipients and identity, then writes the whole schedule
/// in one transaction. Until that is committed nothing of it exists, so a kill anywhere only means doing it again.
struct Scheduler: Sendable {
  let database: Database
  let directory: IdentityV1.DirectoryServiceClient
  let audience: RecipientsV1.AudienceServiceClient
  let release: VaultV1.ReleaseServiceClient
  /// Rings when a schedule is complete.
  let scheduled = Signal()

  func run() async {
    let confirmed = Signal()
    let registration = database.listen(AccountStore.addedChannel) { _ in confirmed.ring() }
    defer { registration.cancel() }
    var backoff = Backoff()
    while !Task.isCancelled {
      let seen = confirmed.count
      if await takeUpAll() {
        backoff.reset()
        await confirmed.wait(after: seen, timeout: .seconds(5))
      } else {
        await confirmed.wait(after: seen, timeout: backoff.next())
      }
    }
  }

  /// Takes up every release that waits; one that fails does not hold up the others. False when any failed.
  func takeUpAll() async -> Bool {
    do {
      var complete = true
      for release in try await AccountStore.unscheduled(in: database) {
        do {
          try await takeUp(release)
        } catch {
          if Task.isCancelled { return false }
          complete = false
          Log.warning(
            "messages not taken up", ["account": .text("\(release.account)"), "error": .text("\(error)")])
        }
      }
      return complete
    } catch {
      Log.warning("confirmed passings not read", ["error": .text("\(error)")])
      return false
    }
  }

  /// Takes one release up; safe to repeat and to run twice at once.
  func takeUp(_ release: Release) async throws {
    let author = try await author(release.account)
    let frozen = try await audience.freezeAudience(
      .init(accountID: "\(release.account)"), CallOptions(timeout: .seconds(10)))
    let recipients = try frozen.recipients.map { recipient in
      ReleasedRecipient(
        id: try Fields.identifier(recipient.recipientID, "recipient_id"), name: recipient.name,
        email: recipient.email, declined: recipient.acceptance == .declined)
    }
    let messages = try await messages(release, frozen, Set(recipients.map(\.id)))
    let count = try await database.transaction { transaction in
      guard
        try await AccountStore(transaction).markScheduled(
          release.account, senderName: author.displayName, timeZone: author.timeZone)
      else { return 0 }
      let store = DeliveryStore(transaction)
      try await store.add(recipients, of: release.account)
      var count = 0
      for message in messages {
        count += try await store.add(
          message, of: release.account, confirmTime: release.confirmTime, timeZone: author.timeZone)
      }
      return count
    }
    Log.info("messages taken up", ["account": .text("\(release.account)"), "deliveries": .number(Int64(count))])
    scheduled.ring()
  }

  private func author(_ account: Identifier) async throws -> IdentityV1.Account {
    let response = try await directory.batchGetAccounts(
      .init(accountIDs: ["\(account)"]), CallOptions(timeout: .seconds(10)))
    guard let author = response.accounts.first else { throw ServiceError.notFound("account") }
    return author
  }

  private func messages(
    _ release: Release, _ frozen: RecipientsV1.FreezeAudienceResponse, _ known: Set<Identifier>
  ) async throws -> [ReleasedMessage] {
    var groups: [Identifier: [Identifier]] = [:]
    for group in frozen.groups {
      groups[try Fields.identifier(group.groupID, "group_id")] = group.recipientIDs.compactMap { Identifier($0) }
    }
    var messages: [ReleasedMessage] = []
    var pageToken = ""
    repeat {
      let page = try await self.release.listReady(
        .init(statement: release.statement, pageToken: pageToken), CallOptions(timeout: .seconds(10)))
      for message in page.messages {
        messages.append(
          ReleasedMessage(
            id: try Fields.identifier(message.messageID, "message_id"), type: try ScheduleRules.type(message.type),
            condition: try ScheduleRules.condition(message.deliveryCondition),
            recipients: ScheduleRules.audience(of: message, recipients: known, groups: groups)))
      }
      pageToken = page.nextPageToken
    } while !pageToken.isEmpty
    return messages
  }
}
