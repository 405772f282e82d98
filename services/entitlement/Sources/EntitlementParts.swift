internal import API
package import RPC
package import ServiceKit

/// How entitlement is put together, and who may call what.
package enum EntitlementParts {
  package static func make(_ runtime: ServiceRuntime) -> ServiceParts {
    ServiceParts(
      services: [EntitlementService(runtime.database), GrantService(runtime.database)], access: access)
  }

  package static var access: [MethodDescriptor: Access] {
    [
      EntitlementV1.EntitlementServiceMethods.getEntitlement: .owner,
      EntitlementV1.GrantServiceMethods.getGrant: .services(["vault"]),
    ]
  }
}
