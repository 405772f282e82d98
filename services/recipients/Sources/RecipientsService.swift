internal import API
internal import Postgres
internal import Primitives
internal import RPC
internal import Sealing
internal import ServiceKit

/// Recipients, groups and acceptance.
struct RecipientsService: RecipientsV1.RecipientsService {
  let database: Database
  let requests: RequestLog
  let courier: Courier
  let pageTokens: PageTokenSealer
  let directory: IdentityV1.DirectoryServiceClient
  let publicURL: String

  private typealias Methods = RecipientsV1.RecipientsServiceMethods

  static let access: [MethodDescriptor: Access] = [
    Methods.addRecipient: .owner,
    Methods.getRecipient: .owner,
    Methods.listRecipients: .owner,
    Methods.updateRecipient: .owner,
    Methods.removeRecipient: .owner,
    Methods.createGroup: .owner,
    Methods.getGroup: .owner,
    Methods.listGroups: .owner,
    Methods.updateGroup: .owner,
    Methods.deleteGroup: .owner,
    Methods.sendPrompt: .owner,
    Methods.getPrompt: .anyone,
    Methods.answerPrompt: .anyone,
  ]

  /// The author as identity knows them now.
  func author(_ account: Identifier, _ context: CallContext) async throws -> IdentityV1.Account {
    var options = context.callOptions()
    options.timeout = .seconds(5)
    let response = try await directory.batchGetAccounts(.init(accountIDs: ["\(account)"]), options)
    guard let author = response.accounts.first else { throw ServiceError.notFound("account") }
    return author
  }
}

/// Serialises the changes of one account against each other and against its freezing.
struct AccountLock {
  static func forChange(_ account: Identifier, in transaction: Transaction) async throws {
    _ = try await transaction.query(
      "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || \("\(account)"), 0))::text")
    let frozen = try await transaction.query("SELECT true FROM frozen_accounts WHERE account_id = \(account)")
    if !frozen.isEmpty {
      throw ServiceError.precondition("ACCOUNT_CLOSED", "Nothing can be changed any more.")
    }
  }

  /// From now on nothing changes; a repeat is harmless.
  static func freeze(_ account: Identifier, in transaction: Transaction) async throws {
    _ = try await transaction.query(
      "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || \("\(account)"), 0))::text")
    _ = try await transaction.execute(
      "INSERT INTO frozen_accounts (account_id) VALUES (\(account)) ON CONFLICT DO NOTHING")
  }
}
