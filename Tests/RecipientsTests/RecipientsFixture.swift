import API
import EventLoop
import Postgres
import Primitives
import Protobuf
import RPC
import Sealing
import ServiceKit
import Synchronization
import TestKit
import recipients

typealias Calls = RecipientsV1.RecipientsServiceMethods
typealias AudienceCalls = RecipientsV1.AudienceServiceMethods

/// The real handlers over a database of their own, one author, and a stand-in for identity.
struct RecipientsFixture: Sendable {
  let runtime: ServiceRuntime
  let service: RecipientsService
  let audience: AudienceService
  let identity: Directory
  let author: Identifier
  /// Another account with an address of its own.
  let stranger: Identifier

  var database: Database { runtime.database }

  static func with(
    identity isThere: Bool = true, _ body: @escaping @Sendable (RecipientsFixture) async throws -> Void
  ) async throws {
    let identity = Directory()
    let (author, stranger) = (Identifier(), Identifier())
    identity.add(author, name: "Anna Berg", email: "anna@afterthoughts.example")
    identity.add(stranger, name: "Sam Strange", email: "sam@afterthoughts.example")
    try await TestRuntime.with(
      name: "recipients", migrations: Migrations.all, neighbours: isThere ? ["identity": [identity]] : [:]
    ) { runtime in
      try await body(
        RecipientsFixture(
          runtime: runtime, service: try RecipientsService(runtime), audience: AudienceService(runtime),
          identity: identity, author: author, stranger: stranger))
    }
  }

  // MARK: Calls

  func owner(_ method: MethodDescriptor, _ account: Identifier? = nil) -> CallContext {
    .owner(account ?? author, method)
  }

  static func request(_ name: String = "Ben", _ email: String? = nil) -> RecipientsV1.AddRecipientRequest {
    .init(
      requestID: "\(Identifier())", name: name, email: email ?? "\(name.lowercased())@afterthoughts.example",
      relationship: .friend)
  }

  func add(
    _ request: RecipientsV1.AddRecipientRequest = RecipientsFixture.request(), by account: Identifier? = nil
  ) async throws -> RecipientsV1.Recipient {
    try await service.addRecipient(request, owner(Calls.addRecipient, account)).recipient ?? .init()
  }

  /// Adds someone and has them asked by mail.
  func addPrompted(_ name: String = "Ben") async throws -> RecipientsV1.Recipient {
    var request = RecipientsFixture.request(name)
    request.promptChannels = [.email]
    return try await add(request)
  }

  func get(_ recipient: RecipientsV1.Recipient, by account: Identifier? = nil) async throws -> RecipientsV1.Recipient {
    let request = RecipientsV1.GetRecipientRequest(recipientID: recipient.recipientID)
    return try await service.getRecipient(request, owner(Calls.getRecipient, account)).recipient ?? .init()
  }

  func list(
    _ request: RecipientsV1.ListRecipientsRequest = .init(), by account: Identifier? = nil
  ) async throws -> RecipientsV1.ListRecipientsResponse {
    try await service.listRecipients(request, owner(Calls.listRecipients, account))
  }

  /// `change` sets the new values; an empty mask means all four fields.
  func update(
    _ old: RecipientsV1.Recipient, mask: [String] = [], requestID: Identifier = Identifier(),
    by account: Identifier? = nil, _ change: (inout RecipientsV1.Recipient) -> Void = { _ in }
  ) async throws -> RecipientsV1.Recipient {
    var new = old
    change(&new)
    let request = RecipientsV1.UpdateRecipientRequest(
      requestID: "\(requestID)", recipientID: old.recipientID, revision: old.revision, recipient: new,
      updateMask: mask.isEmpty ? nil : .init(paths: mask))
    return try await service.updateRecipient(request, owner(Calls.updateRecipient, account)).recipient ?? .init()
  }

  func remove(
    _ recipient: RecipientsV1.Recipient, requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws {
    let request = RecipientsV1.RemoveRecipientRequest(
      requestID: "\(requestID)", recipientID: recipient.recipientID)
    _ = try await service.removeRecipient(request, owner(Calls.removeRecipient, account))
  }

  func createGroup(
    _ name: String, _ members: [RecipientsV1.Recipient] = [], requestID: Identifier = Identifier(),
    by account: Identifier? = nil
  ) async throws -> RecipientsV1.Group {
    let request = RecipientsV1.CreateGroupRequest(
      requestID: "\(requestID)", name: name, recipientIDs: members.map(\.recipientID))
    return try await service.createGroup(request, owner(Calls.createGroup, account)).group ?? .init()
  }

  func updateGroup(
    _ group: RecipientsV1.Group, requestID: Identifier = Identifier(), by account: Identifier? = nil,
    _ change: (inout RecipientsV1.UpdateGroupRequest) -> Void = { _ in }
  ) async throws -> RecipientsV1.Group {
    var request = RecipientsV1.UpdateGroupRequest(
      requestID: "\(requestID)", groupID: group.groupID, revision: group.revision, name: group.name,
      recipientIDs: group.recipientIDs)
    change(&request)
    return try await service.updateGroup(request, owner(Calls.updateGroup, account)).group ?? .init()
  }

  func deleteGroup(
    _ group: RecipientsV1.Group, requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws {
    let request = RecipientsV1.DeleteGroupRequest(requestID: "\(requestID)", groupID: group.groupID)
    _ = try await service.deleteGroup(request, owner(Calls.deleteGroup, account))
  }

  func getGroup(_ group: RecipientsV1.Group, by account: Identifier? = nil) async throws -> RecipientsV1.Group {
    try await service.getGroup(.init(groupID: group.groupID), owner(Calls.getGroup, account)).group ?? .init()
  }

  func groups(by account: Identifier? = nil) async throws -> [RecipientsV1.Group] {
    try await service.listGroups(.init(), owner(Calls.listGroups, account)).groups
  }

  func sendPrompt(
    _ recipient: RecipientsV1.Recipient, _ channels: [RecipientsV1.PromptChannel] = [.email],
    requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws -> RecipientsV1.Recipient {
    let request = RecipientsV1.SendPromptRequest(
      requestID: "\(requestID)", recipientID: recipient.recipientID, channels: channels)
    return try await service.sendPrompt(request, owner(Calls.sendPrompt, account)).recipient ?? .init()
  }

  func getPrompt(_ token: String) async throws -> RecipientsV1.GetPromptResponse {
    try await service.getPrompt(.init(token: token), .anonymous(Calls.getPrompt))
  }

  func answer(
    _ token: String, _ answer: RecipientsV1.Acceptance, requestID: Identifier = Identifier()
  ) async throws -> RecipientsV1.AnswerPromptResponse {
    try await service.answerPrompt(
      .init(requestID: "\(requestID)", token: token, answer: answer), .anonymous(Calls.answerPrompt))
  }

  func check(
    recipients: [String] = [], groups: [String] = [], of account: Identifier? = nil
  ) async throws -> RecipientsV1.CheckAudienceResponse {
    try await audience.checkAudience(
      .init(accountID: "\(account ?? author)", recipientIDs: recipients, groupIDs: groups),
      .service("vault", AudienceCalls.checkAudience))
  }

  func freeze(_ account: Identifier? = nil) async throws -> RecipientsV1.FreezeAudienceResponse {
    try await audience.freezeAudience(
      .init(accountID: "\(account ?? author)"), .service("delivery", AudienceCalls.freezeAudience))
  }

  // MARK: What was left behind

  /// The mails that wait for the notifications service, oldest first.
  func mails() async throws -> [NotificationsV1.SendRequest] {
    guard let key = try await runtime.dataKeys.existingKey(for: DataKeys.serviceOwner, in: database) else { return [] }
    return try await database.query("SELECT send_id, sealed FROM send_queue ORDER BY create_time, send_id").map { row in
      let (id, sealed) = try row.decode((Identifier, [UInt8]).self)
      let binding = Binding(table: "send_queue", column: "sealed", row: id, owner: DataKeys.serviceOwner)
      return try NotificationsV1.SendRequest(serialized: try key.open(sealed, binding))
    }
  }

  /// The tokens of the prompts' links, oldest first.
  func tokens() async throws -> [String] {
    try await mails().map { mail in
      guard case .acceptancePrompt(let prompt) = mail.content else { return "" }
      return String(prompt.link.split(separator: "/").last ?? "")
    }
  }

  /// The types of the published events, oldest first.
  func events() async throws -> [String] {
    try await database.query("SELECT type FROM outbox ORDER BY sequence").map { row in
      String(try row.decode(String.self, at: 0).split(separator: ".").last ?? "")
    }
  }

  func count(_ table: String) async throws -> Int {
    try await database.query("SELECT count(*) FROM \(unescaped: table)")[0].decode(Int.self)
  }

  /// As if the last prompts had gone out that much earlier, in SQL's words.
  func agePrompts(_ interval: String) async throws {
    for column in ["recipients", "prompted_addresses"] {
      try await database.execute(
        "UPDATE \(unescaped: column) SET prompt_time = prompt_time - interval '\(unescaped: interval)'")
    }
    try await database.execute(
      "UPDATE prompts SET expire_time = expire_time - interval '\(unescaped: interval)'")
  }

  /// Runs `statement` under the account's lock as soon as `waiting` calls of `body` wait for it; then `body` goes on.
  func interleaving<Value: Sendable>(
    _ account: Identifier, waiting: Int = 1, _ statement: Query, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    async let held: Void = database.transaction { transaction in
      try await transaction.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || \("\(account)"), 0))")
      try await locks(granted: false, reach: waiting)
      try await transaction.execute(statement)
    }
    try await locks(granted: true, reach: 1)
    let value = try await body()
    try await held
    return value
  }

  /// Looks until so many advisory locks are held or waited for in this database; gives up at last.
  private func locks(granted: Bool, reach count: Int) async throws {
    for _ in 0..<20_000 {
      let found = try await database.query(
        """
        SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = \(granted)
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        """)[0].decode(Int.self)
      if found >= count { return }
    }
  }
}

/// Stands in for identity: knows the accounts that a test adds.
final class Directory: IdentityV1.DirectoryService {
  private let accounts = Mutex<[Identifier: IdentityV1.Account]>([:])

  func add(_ id: Identifier, name: String, email: String, verified: Bool = true) {
    accounts.withLock {
      $0[id] = IdentityV1.Account(
        accountID: "\(id)", email: email, emailVerified: verified, displayName: name, status: .active)
    }
  }

  func change(_ id: Identifier, _ change: (inout IdentityV1.Account) -> Void) {
    accounts.withLock { accounts in
      var account = accounts[id] ?? .init()
      change(&account)
      accounts[id] = account
    }
  }

  func batchGetAccounts(
    _ request: IdentityV1.BatchGetAccountsRequest, _ context: CallContext
  ) async throws -> IdentityV1.BatchGetAccountsResponse {
    let known = accounts.withLock { $0 }
    return .init(accounts: request.accountIDs.compactMap { Identifier($0).flatMap { known[$0] } })
  }

  func getSigningKeys(
    _ request: IdentityV1.GetSigningKeysRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSigningKeysResponse {
    throw ServiceError(.unimplemented, "not asked by recipients")
  }

  func findAccountsByEmail(
    _ request: IdentityV1.FindAccountsByEmailRequest, _ context: CallContext
  ) async throws -> IdentityV1.FindAccountsByEmailResponse {
    throw ServiceError(.unimplemented, "not asked by recipients")
  }

  func getSecurityQuestion(
    _ request: IdentityV1.GetSecurityQuestionRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetSecurityQuestionResponse {
    throw ServiceError(.unimplemented, "not asked by recipients")
  }

  func checkSecurityAnswer(
    _ request: IdentityV1.CheckSecurityAnswerRequest, _ context: CallContext
  ) async throws -> IdentityV1.CheckSecurityAnswerResponse {
    throw ServiceError(.unimplemented, "not asked by recipients")
  }
}
