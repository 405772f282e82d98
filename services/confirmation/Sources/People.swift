internal import API
internal import Primitives
internal import RPC
internal import Sealing
internal import ServiceKit

/// An account, as far as confirmation needs to know it.
struct Person: Sendable {
  let account: Identifier
  let name: String
  let email: String
  let emailVerified: Bool
  let status: IdentityV1.AccountStatus

  var emailKey: String { Normalisation.emailKey(email) }
}

/// Asks identity and recipients who people are. Whatever keeps them from answering means UNAVAILABLE, never a guess:
/// their refusal of us is a fault of the installation and must not look like one of the request.
struct People: Sendable {
  private let directory: IdentityV1.DirectoryServiceClient
  private let audience: RecipientsV1.AudienceServiceClient

  init(_ runtime: ServiceRuntime) throws {
    directory = IdentityV1.DirectoryServiceClient(try runtime.neighbours.channel(to: "identity"))
    audience = RecipientsV1.AudienceServiceClient(try runtime.neighbours.channel(to: "recipients"))
  }

  func person(_ account: Identifier, _ context: CallContext) async throws -> Person {
    guard let person = try await people([account], context)[account] else { throw ServiceError.notFound("account") }
    return person
  }

  func people(_ accounts: [Identifier], _ context: CallContext) async throws -> [Identifier: Person] {
    if accounts.isEmpty { return [:] }
    let response = try await reaching {
      try await directory.batchGetAccounts(.init(accountIDs: accounts.map { "\($0)" }), options(context))
    }
    var result: [Identifier: Person] = [:]
    for account in response.accounts {
      let id = try Fields.identifier(account.accountID, "account_id")
      result[id] = Person(
        account: id, name: account.displayName, email: account.email, emailVerified: account.emailVerified,
        status: account.status)
    }
    return result
  }

  func securityQuestion(_ account: Identifier, _ context: CallContext) async throws -> String {
    let response = try await reaching {
      try await directory.getSecurityQuestion(.init(accountID: "\(account)"), options(context))
    }
    guard let question = response.question else { throw ServiceError.notFound("security question") }
    return question.text
  }

  func isAnswer(_ answer: String, of account: Identifier, _ context: CallContext) async throws -> Bool {
    try await reaching {
      try await directory.checkSecurityAnswer(
        .init(accountID: "\(account)", securityAnswer: answer), options(context))
    }.correct
  }

  /// One of the owner's recipients; nil when it is not theirs.
  func recipient(
    _ recipient: Identifier, of owner: Identifier, _ context: CallContext
  ) async throws -> RecipientsV1.Recipient? {
    try await reaching {
      try await audience.checkAudience(
        .init(accountID: "\(owner)", recipientIDs: ["\(recipient)"]), options(context))
    }.recipients.first
  }

  private func options(_ context: CallContext) -> CallOptions {
    var options = context.callOptions()
    options.timeout = .seconds(5)
    return options
  }

  private func reaching<Response>(_ call: () async throws -> Response) async throws -> Response {
    do {
      return try await call()
    } catch let error as ServiceError where error.code != .cancelled {
      throw ServiceError.unavailable("This cannot be checked just now; try again.", cause: error)
    }
  }
}
