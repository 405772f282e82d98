import API
import EventLoop
import Mail
import Postgres
import Primitives
import RPC
import ServiceKit
import Synchronization
import TestKit

@testable import notifications

/// A notifications service on a database and a mail server of its own.
struct NotificationsFixture {
  typealias Calls = NotificationsV1.NotificationsServiceMethods

  let runtime: ServiceRuntime
  let mail: MailServer
  let accounts: Accounts
  let service: SendService
  let notices: NoticeService
  let sender: Sender

  var database: Database { runtime.database }

  static func with(mailPort: Int? = nil, _ body: (NotificationsFixture) async throws -> Void) async throws {
    let mail = try MailServer()
    let accounts = Accounts()
    try await TestRuntime.with(
      name: "notifications", migrations: Migrations.all, neighbours: ["identity": [accounts]]
    ) { runtime in
      try await body(try NotificationsFixture(runtime, mail, mailPort ?? mail.port, accounts))
    }
  }

  private init(_ runtime: ServiceRuntime, _ mail: MailServer, _ port: Int, _ accounts: Accounts) throws {
    self.runtime = runtime
    self.mail = mail
    self.accounts = accounts
    service = SendService(database: runtime.database, dataKeys: runtime.dataKeys)
    notices = NoticeService(
      database: runtime.database, dataKeys: runtime.dataKeys, requests: runtime.requests,
      pageTokens: runtime.pageTokens)
    sender = Sender(
      database: runtime.database, dataKeys: runtime.dataKeys,
      mailer: try Mailer(
        url: "smtp://127.0.0.1:\(port)", sendTimeout: SendRules.mailTimeout,
        pool: BlockingPool(name: "mail", threads: 4, queueMax: 64)),
      from: MailAddress("us@afterthoughts.example", displayName: "Afterthoughts"),
      directory: .init(try runtime.neighbours.channel(to: "identity")), queued: service.queued, mailConnections: 4)
  }

  // MARK: Requests

  static let link = "https://afterthoughts.example/message/secret-of-the-link"

  func request(
    _ id: Identifier = Identifier(), to email: String = "anna@example.com", name: String = "Anna",
    account: Identifier? = nil, _ content: NotificationsV1.SendRequest.Content? = nil
  ) -> NotificationsV1.SendRequest {
    .init(
      requestID: "\(id)", addressee: .init(name: name, email: email, accountID: account.map { "\($0)" } ?? ""),
      content: content ?? .messageNotice(.init(senderName: "Karl", link: NotificationsFixture.link)))
  }

  func request(_ content: NotificationsV1.SendRequest.Content) -> NotificationsV1.SendRequest {
    request(Identifier(), content)
  }

  @discardableResult
  func send(_ request: NotificationsV1.SendRequest) async throws -> NotificationsV1.SendResponse {
    try await service.send(request, .service("delivery", NotificationsV1.SendServiceMethods.send))
  }

  /// Tries everything that is due on both channels once.
  func work() async throws {
    _ = try await sender.sendDue(.email, atOnce: 100)
    _ = try await sender.sendDue(.inApp, atOnce: 100)
  }

  /// Makes everything that waits due now, as if time had passed.
  func letTimePass(age: String = "0 s") async throws {
    try await database.execute("UPDATE sends SET next_attempt_time = now() WHERE status = 'pending'")
    try await database.execute("UPDATE notifications SET create_time = create_time - \(age)::text::interval")
  }

  func list(
    _ account: Identifier, size: Int32 = 0, token: String = ""
  ) async throws -> NotificationsV1.ListNotificationsResponse {
    try await notices.listNotifications(
      .init(pageSize: size, pageToken: token), .owner(account, Calls.listNotifications))
  }

  // MARK: The database

  func texts(_ query: Query) async throws -> [String] {
    try await database.query(query).map { try $0.decode(String.self, at: 0) }
  }

  /// Each send as `channel status attempts`.
  func sends() async throws -> [String] {
    try await texts("SELECT channel || ' ' || status || ' ' || attempts FROM sends ORDER BY channel")
  }

  /// The log of a channel as `event reason`, oldest first.
  func log(_ channel: String = "email") async throws -> [String] {
    try await texts(
      "SELECT rtrim(event || ' ' || reason) FROM notification_log WHERE channel = \(channel) ORDER BY entry")
  }

  func events() async throws -> [String] {
    try await texts("SELECT type FROM outbox ORDER BY sequence").map { String($0.split(separator: ".").last ?? "") }
  }
}

/// Stands in for identity: accounts by address.
final class Accounts: IdentityV1.DirectoryService {
  let byEmail = Mutex<[String: Identifier]>([:])
  let isAway = Mutex(false)

  func findAccountsByEmail(
    _ request: IdentityV1.FindAccountsByEmailRequest, _ context: CallContext
  ) async throws -> IdentityV1.FindAccountsByEmailResponse {
    if isAway.withLock({ $0 }) { throw ServiceError.unavailable("away") }
    let found = byEmail.withLock { known in request.emails.compactMap { known[$0] } }
    return .init(accounts: found.map { .init(accountID: "\($0)") })
  }

  func batchGetAccounts(
    _ request: IdentityV1.BatchGetAccountsRequest, _ context: CallContext
  ) async throws -> IdentityV1.BatchGetAccountsResponse { throw ServiceError(.unimplemented, "not asked") }

  func getSigningKeys(
    _ request: IdentityV1.GetSigningKeysRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSigningKeysResponse { throw ServiceError(.unimplemented, "not asked") }

  func getSecurityQuestion(
    _ request: IdentityV1.GetSecurityQuestionRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSecurityQuestionResponse { throw ServiceError(.unimplemented, "not asked") }

  func checkSecurityAnswer(
    _ request: IdentityV1.CheckSecurityAnswerRequest, _ context: CallContext
  ) async throws -> IdentityV1.CheckSecurityAnswerResponse { throw ServiceError(.unimplemented, "not asked") }
}
