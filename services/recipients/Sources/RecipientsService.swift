internal import API
internal import Postgres
internal import Primitives
internal import RPC
internal import Sealing
package import ServiceKit

/// Recipients, groups and acceptance.
package struct RecipientsService: RecipientsV1.RecipientsService {
  let database: Database
  let requests: RequestLog
  let dataKeys: DataKeys
  let courier: Courier
  let pageTokens: PageTokenSealer
  let publicURL: String
  private let directory: IdentityV1.DirectoryServiceClient

  package init(_ runtime: ServiceRuntime) throws {
    database = runtime.database
    requests = runtime.requests
    dataKeys = runtime.dataKeys
    courier = try runtime.courier()
    pageTokens = runtime.pageTokens
    publicURL = runtime.config.publicURL
    directory = IdentityV1.DirectoryServiceClient(try runtime.neighbours.channel(to: "identity"))
  }

  /// The author as identity knows them now; nil when it knows none. UNAVAILABLE whatever keeps identity from answering:
  /// its refusal of us is a fault of the installation and must not look like one of the request.
  func author(_ account: Identifier, _ context: CallContext) async throws -> IdentityV1.Account? {
    var options = context.callOptions()
    options.timeout = .seconds(5)
    do {
      return try await directory.batchGetAccounts(.init(accountIDs: ["\(account)"]), options).accounts.first
    } catch let error as ServiceError where error.code != .cancelled {
      throw ServiceError.unavailable("This cannot be checked just now; try again.", cause: error)
    }
  }

  /// The caller as identity knows them now.
  func callingAuthor(_ account: Identifier, _ context: CallContext) async throws -> IdentityV1.Account {
    guard let author = try await author(account, context) else { throw ServiceError.unauthenticated() }
    return author
  }
}

/// Serialises the changes of one account against each other and against its freezing.
struct AccountLock {
  static func forChange(_ account: Identifier, in transaction: Transaction) async throws {
    try await take(account, in: transaction)
    let frozen = try await transaction.query("SELECT true FROM frozen_accounts WHERE account_id = \(account)")
    if !frozen.isEmpty {
      throw ServiceError.precondition("ACCOUNT_CLOSED", "Nothing can be changed any more.")
    }
  }

  /// From now on nothing changes; a repeat is harmless.
  static func freeze(_ account: Identifier, in transaction: Transaction) async throws {
    try await take(account, in: transaction)
    _ = try await transaction.execute(
      "INSERT INTO frozen_accounts (account_id) VALUES (\(account)) ON CONFLICT DO NOTHING")
  }

  private static func take(_ account: Identifier, in transaction: Transaction) async throws {
    _ = try await transaction.query(
      "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || \("\(account)"), 0))::text")
  }
}
