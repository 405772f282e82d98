internal import API
internal import Events
internal import Mail
internal import Postgres
internal import Primitives
internal import Protobuf
internal import RPC
internal import Sealing
internal import ServiceKit

/// Sends what is due. A send is leased before the provider is called and ended right after; a kill in between repeats
/// that one mail, with the same Message-ID.
struct Sender: Sendable {
  let database: Database
  let dataKeys: DataKeys
  let mailer: Mailer
  let from: MailAddress
  let directory: IdentityV1.DirectoryServiceClient
  let queued: Signal
  /// How many mails are under way at once: as many as the mailer has threads, so that a leased send never waits.
  let mailConnections: Int
  /// Notices in the app are short: all of a batch run at once.
  private static let noticesAtOnce = 32

  /// Works until the task is cancelled. A slow mail holds up neither other mails nor the notices in the app.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<mailConnections { group.addTask { await run(.email, atOnce: 1) } }
      group.addTask { await run(.inApp, atOnce: Sender.noticesAtOnce) }
    }
  }

  private func run(_ channel: SendChannel, atOnce: Int) async {
    var backoff = Backoff()
    while !Task.isCancelled {
      let seen = queued.count
      do {
        if try await sendDue(channel, atOnce: atOnce) == 0 { await queued.wait(after: seen, timeout: .seconds(1)) }
        backoff.reset()
      } catch {
        if Task.isCancelled { return }
        Log.warning("due sends not read", ["error": .text("\(error)")])
        await pause(backoff.next())
      }
    }
  }

  /// Tries what is due on a channel, at most `atOnce` sends; returns how many were tried.
  func sendDue(_ channel: SendChannel, atOnce: Int) async throws -> Int {
    let due = try await database.transaction { try await SendStore($0).claimDue(channel, limit: atOnce) }
    await withTaskGroup(of: Void.self) { group in
      for send in due { group.addTask { await attempt(send) } }
    }
    return due.count
  }

  private func attempt(_ send: DueSend) async {
    do {
      let key = try await dataKeys.serviceKey(in: database)
      let request = try NotificationsV1.SendRequest(
        serialized: try key.open(send.sealed, SendRules.binding(send.id)))
      guard let template = Template(request.content), let addressee = request.addressee else {
        throw ServiceError.invalid("content", "is missing")
      }
      switch send.channel {
      case .email: try await email(send, template, addressee)
      case .inApp: try await notice(send, template, addressee)
      }
    } catch {
      // The lease runs out and the send is tried again.
      Log.warning("send not finished", ["notification": .text("\(send.id)"), "error": .text("\(error)")])
    }
  }

  private func email(_ send: DueSend, _ template: Template, _ addressee: NotificationsV1.Addressee) async throws {
    let message = MailMessage(
      from: from, to: MailAddress(addressee.email, displayName: addressee.name), subject: template.subject,
      textBody: template.text(greeting: addressee.name), htmlBody: template.html(greeting: addressee.name),
      messageID: Sender.messageID(send.id, from: from), date: send.createTime)
    do {
      try await mailer.send(message)
    } catch .permanent(let code, _) {
      try await fail(send, template, reason: "refused \(code)")
      return
    } catch .temporary(let code, _) {
      try await postpone(send, template, reason: code.map { "answered \($0)" } ?? "no answer")
      return
    } catch {
      try await fail(send, template, reason: "not a valid mail")
      return
    }
    try await database.transaction { transaction in
      guard try await SendStore(transaction).end(send, "sent", template) else { return }
      try await transaction.publish(
        NotificationsV1.NotificationSent(notificationID: "\(send.id)", channel: send.channel.number), subject: send.id)
    }
  }

  /// To be tried again, unless this was the last try.
  private func postpone(_ send: DueSend, _ template: Template, reason: String) async throws {
    if send.isLast { return try await fail(send, template, reason: "gave up: \(reason)") }
    try await database.transaction { transaction in
      try await SendStore(transaction).postpone(send, template, reason: reason)
    }
  }

  private func fail(_ send: DueSend, _ template: Template, reason: String) async throws {
    try await database.transaction { transaction in
      guard try await SendStore(transaction).end(send, "failed", template, reason: reason) else { return }
      try await transaction.publish(
        NotificationsV1.NotificationFailed(notificationID: "\(send.id)", channel: send.channel.number),
        subject: send.id)
    }
  }

  /// Inside the app: for those who have an account with this address, which identity knows.
  private func notice(_ send: DueSend, _ template: Template, _ addressee: NotificationsV1.Addressee) async throws {
    guard let notice = template.notice else { return }
    var account = Identifier(addressee.accountID)
    if account == nil {
      do {
        let found = try await directory.findAccountsByEmail(
          .init(emails: [addressee.email]), CallOptions(timeout: .seconds(5)))
        account = found.accounts.first.flatMap { Identifier($0.accountID) }
      } catch let error as ServiceError {
        return try await postpone(send, template, reason: error.code.name)
      }
    }
    guard let account else {
      try await database.transaction { transaction in
        _ = try await SendStore(transaction).end(send, "skipped", template, reason: "no account")
      }
      return
    }
    try await database.transaction { transaction in
      guard try await SendStore(transaction).end(send, "sent", template) else { return }
      let key = try await dataKeys.key(for: account, in: transaction)
      try await NoticeStore.add(
        send.id, account: account, type: notice.type,
        sealed: try key.seal(Array(notice.description.utf8), NoticeStore.binding(send.id, account)), in: transaction)
    }
  }

  /// The same for every try of a notification.
  static func messageID(_ id: Identifier, from: MailAddress) -> String {
    let domain = from.address.split(separator: "@").last.map(String.init) ?? "localhost"
    return "<\(id)@\(domain)>"
  }
}
