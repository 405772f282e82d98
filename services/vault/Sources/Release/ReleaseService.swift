package import API
internal import Postgres
internal import Primitives
package import RPC
internal import Sealing
package import ServiceKit

/// Opens a vault for delivery, against the signed statement of a confirmed passing.
package struct ReleaseService: VaultV1.ReleaseService {
  private let runtime: ServiceRuntime
  private let rules: ReleaseRules

  package init(_ runtime: ServiceRuntime, _ rules: ReleaseRules) {
    self.runtime = runtime
    self.rules = rules
  }

  package func listReady(
    _ request: VaultV1.ListReadyRequest, _ context: CallContext
  ) async throws -> VaultV1.ListReadyResponse {
    let passing = try rules.prove(request.statement)
    let account = passing.accountID
    let size = try Fields.pageSize(request.pageSize, default: 500, max: 1000)
    let scope = PageScope(runtime.pageTokens, context, arguments: account.bytes)
    let cursor = try scope.open(request.pageToken)
    // A page token is proof of a first call, which froze the account.
    if cursor == nil {
      try await runtime.database.transaction { try await AccountStore($0).freeze(account) }
    }
    let found = try await ReleaseReader(runtime.database).list(of: account, after: cursor, limit: size + 1)
    let page = try MessagePage(found, size: size, scope) { $0.readyProto }
    return VaultV1.ListReadyResponse(messages: page.entries, nextPageToken: page.nextToken)
  }

  package func readDelivered(
    _ request: VaultV1.ReadDeliveredRequest, _ context: CallContext
  ) async throws -> VaultV1.ReadDeliveredResponse {
    let passing = try rules.prove(request.statement)
    let id = try Fields.identifier(request.messageID, "message_id")
    guard case .service(let caller) = context.caller else { throw ServiceError.denied() }
    let found = try await ReleaseReader(runtime.database).read(id, of: passing, by: caller)
    guard let (message, sealed) = found else { throw ServiceError.notFound("message") }
    guard let key = try await runtime.dataKeys.existingKey(for: passing.accountID, in: runtime.database) else {
      throw ServiceError.internal(cause: SealingError.unknownKey)
    }
    let body = try key.open(sealed, StoredMessage.binding(id, passing.accountID, .ready))
    return VaultV1.ReadDeliveredResponse(
      type: message.type, title: message.title, body: String(decoding: body, as: UTF8.self))
  }
}
