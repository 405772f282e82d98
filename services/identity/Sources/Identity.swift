internal import API
package import RPC
package import ServiceKit

/// How the service is put together, and who may call what.
package enum Identity {
  package static func parts(_ runtime: ServiceRuntime, _ config: IdentityConfig) throws -> ServiceParts {
    let courier = try runtime.courier()
    let service = IdentityService(runtime: runtime, config: config, courier: courier)
    return ServiceParts(
      services: [service, DirectoryService(runtime: runtime, config: config, hasher: service.hasher)],
      access: access,
      subscriptions: [IdentityEvents.confirmation(try runtime.subscription(to: "confirmation"))],
      workers: [
        Worker("courier") { await courier.run() },
        Worker("housekeeping") { await Housekeeping.run(runtime.database) },
      ],
      tokens: AccessTokens { (config.verifyingKeys, config.issuer) })
  }

  private typealias Methods = IdentityV1.IdentityServiceMethods
  private typealias DirectoryMethods = IdentityV1.DirectoryServiceMethods

  package static let access: [MethodDescriptor: Access] = [
    Methods.listSecurityQuestions: .anyone,
    Methods.getLegalDocument: .anyone,
    Methods.register: .anyone,
    Methods.resendVerification: .owner,
    Methods.verifyEmail: .anyone,
    Methods.logIn: .anyone,
    Methods.refresh: .anyone,
    Methods.logOut: .owner,
    Methods.getAccount: .owner,
    DirectoryMethods.getSigningKeys: .anyService,
    DirectoryMethods.batchGetAccounts: .anyService,
    DirectoryMethods.findAccountsByEmail: .services(["confirmation", "notifications"]),
    DirectoryMethods.getSecurityQuestion: .services(["confirmation"]),
    DirectoryMethods.checkSecurityAnswer: .services(["confirmation"]),
  ]
}
