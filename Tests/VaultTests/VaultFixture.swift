import API
import Postgres
import Primitives
import Protobuf
import RPC
import Sealing
import ServiceKit
import TestKit
import vault

/// A vault on a database of its own, one author with a recipient and a group, and stand-ins for its neighbours.
struct VaultFixture: Sendable {
  typealias Calls = VaultV1.VaultServiceMethods
  typealias ReleaseCalls = VaultV1.ReleaseServiceMethods

  let runtime: ServiceRuntime
  let vault: VaultService
  let release: ReleaseService
  let standIns: StandIns
  let statementKey: SigningKey
  let author = Identifier()
  let recipient = Identifier()
  let group = Identifier()

  static func with(
    neighbours areThere: Bool = true, _ body: (VaultFixture) async throws -> Void
  ) async throws {
    let standIns = StandIns()
    try await TestRuntime.with(
      name: "vault", migrations: Migrations.all, neighbours: areThere ? standIns.neighbours : [:]
    ) { runtime in
      try await body(try VaultFixture(runtime, standIns))
    }
  }

  private init(_ runtime: ServiceRuntime, _ standIns: StandIns) throws {
    self.runtime = runtime
    self.standIns = standIns
    statementKey = SigningKey.random()
    vault = try VaultService(runtime)
    release = ReleaseService(runtime, ReleaseRules(keys: [statementKey.verifyingKey]))
    let (recipient, group) = (recipient, group)
    standIns.set { state in
      state.recipients = [recipient]
      state.groups = [group]
    }
  }

  // MARK: Contents

  /// A letter that may become ready; `change` makes it another one.
  func letter(_ change: (inout VaultV1.MessageContent) -> Void = { _ in }) -> VaultV1.MessageContent {
    var content = VaultV1.MessageContent(
      type: .letter, title: "For Anna", body: "Dear **Anna**,\n\n- one\n- two\n",
      recipientIDs: ["\(recipient)"], groupIDs: ["\(group)"],
      deliveryCondition: .init(condition: .immediate(.init())))
    change(&content)
    return content
  }

  // MARK: Calls

  func owner(_ method: MethodDescriptor, _ account: Identifier? = nil, emailVerified: Bool = true) -> CallContext {
    .owner(account ?? author, method, emailVerified: emailVerified)
  }

  func saveDraft(
    _ content: VaultV1.MessageContent?, over message: VaultV1.Message? = nil, requestID: Identifier = Identifier(),
    by account: Identifier? = nil
  ) async throws -> VaultV1.Message {
    let request = VaultV1.SaveDraftRequest(
      requestID: "\(requestID)", messageID: message?.messageID ?? "", revision: message?.revision ?? 0,
      content: content)
    return try await vault.saveDraft(request, owner(Calls.saveDraft, account)).message ?? .init()
  }

  func saveToVault(
    _ content: VaultV1.MessageContent?, over message: VaultV1.Message? = nil, requestID: Identifier = Identifier(),
    by account: Identifier? = nil, emailVerified: Bool = true
  ) async throws -> VaultV1.Message {
    let request = VaultV1.SaveToVaultRequest(
      requestID: "\(requestID)", messageID: message?.messageID ?? "", revision: message?.revision ?? 0,
      content: content)
    let context = owner(Calls.saveToVault, account, emailVerified: emailVerified)
    return try await vault.saveToVault(request, context).message ?? .init()
  }

  func get(_ message: VaultV1.Message, by account: Identifier? = nil) async throws -> VaultV1.Message {
    let request = VaultV1.GetMessageRequest(messageID: message.messageID)
    return try await vault.getMessage(request, owner(Calls.getMessage, account)).message ?? .init()
  }

  func list(
    _ request: VaultV1.ListMessagesRequest = .init(), by account: Identifier? = nil
  ) async throws -> VaultV1.ListMessagesResponse {
    try await vault.listMessages(request, owner(Calls.listMessages, account))
  }

  func delete(_ message: VaultV1.Message, by account: Identifier? = nil) async throws {
    let request = VaultV1.DeleteMessageRequest(
      requestID: "\(Identifier())", messageID: message.messageID, revision: message.revision)
    _ = try await vault.deleteMessage(request, owner(Calls.deleteMessage, account))
  }

  func saveItem(
    _ title: String, _ text: String, section: VaultV1.FolderSection = .insurance, over item: VaultV1.FolderItem? = nil,
    requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws -> VaultV1.FolderItem {
    let request = VaultV1.SaveFolderItemRequest(
      requestID: "\(requestID)", itemID: item?.itemID ?? "", revision: item?.revision ?? 0, section: section,
      title: title, text: text)
    return try await vault.saveFolderItem(request, owner(Calls.saveFolderItem, account)).item ?? .init()
  }

  // MARK: Release

  /// What confirmation would sign for an account.
  func statement(for account: Identifier, key: SigningKey? = nil) throws -> ConfirmationV1.SignedStatement {
    let key = key ?? statementKey
    let statement = ConfirmationV1.ConfirmationStatement(
      confirmationID: "\(Identifier())", accountID: "\(account)", confirmTime: .init(seconds: 1)
    ).serialized()
    return .init(
      statement: statement, signature: try key.sign(ReleaseRules.prefix + statement), keyID: key.verifyingKey.keyID)
  }

  func listReady(
    _ statement: ConfirmationV1.SignedStatement?, pageSize: Int32 = 0, pageToken: String = ""
  ) async throws -> VaultV1.ListReadyResponse {
    let request = VaultV1.ListReadyRequest(statement: statement, pageSize: pageSize, pageToken: pageToken)
    return try await release.listReady(request, .service("delivery", ReleaseCalls.listReady))
  }

  func readDelivered(
    _ statement: ConfirmationV1.SignedStatement?, _ messageID: String
  ) async throws -> VaultV1.ReadDeliveredResponse {
    let request = VaultV1.ReadDeliveredRequest(statement: statement, messageID: messageID)
    return try await release.readDelivered(request, .service("delivery", ReleaseCalls.readDelivered))
  }

  // MARK: The database

  func count(_ table: String) async throws -> Int {
    try await runtime.database.query("SELECT count(*) FROM \(unescaped: table)")[0].decode(Int.self)
  }

  /// The types of the recorded events, in order.
  func events() async throws -> [String] {
    try await runtime.database.query("SELECT type FROM outbox ORDER BY sequence").map { try $0.decode(String.self) }
  }
}
