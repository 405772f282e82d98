package import API
package import Postgres
internal import Primitives
package import RPC
internal import ServiceKit

/// Tells people where their own entitlement stands.
package struct EntitlementService: EntitlementV1.EntitlementService {
  private let reader: GrantReader

  package init(_ database: Database) {
    reader = GrantReader(database)
  }

  package func getEntitlement(
    _ request: EntitlementV1.GetEntitlementRequest, _ context: CallContext
  ) async throws -> EntitlementV1.GetEntitlementResponse {
    let (state, grantTime) = try await reader.read(try context.account().accountID)
    return EntitlementV1.GetEntitlementResponse(state: state, grantTime: grantTime.map { .init($0) })
  }
}

/// Tells vault where an account's entitlement stands.
package struct GrantService: EntitlementV1.GrantService {
  private let reader: GrantReader

  package init(_ database: Database) {
    reader = GrantReader(database)
  }

  package func getGrant(
    _ request: EntitlementV1.GetGrantRequest, _ context: CallContext
  ) async throws -> EntitlementV1.GetGrantResponse {
    let account = try Fields.identifier(request.accountID, "account_id")
    return EntitlementV1.GetGrantResponse(state: try await reader.read(account).state)
  }
}
