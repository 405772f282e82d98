internal import API
package import RPC
package import Sealing
package import ServiceKit

/// How confirmation is put together, and who may call what.
package enum ConfirmationParts {
  package static func make(_ runtime: ServiceRuntime, signingKey: SigningKey) throws -> ServiceParts {
    let service = try ConfirmationService(runtime, signingKey: signingKey)
    return ServiceParts(
      services: [service, DesignationService(runtime)], access: access,
      workers: [Worker("courier") { await service.courier.run() }])
  }

  package static var access: [MethodDescriptor: Access] {
    typealias Confirmation = ConfirmationV1.ConfirmationServiceMethods
    return [
      Confirmation.designate: .owner,
      Confirmation.getDesignations: .owner,
      Confirmation.removeDesignation: .owner,
      Confirmation.listVerifications: .owner,
      Confirmation.openAttempt: .owner,
      Confirmation.answerChallenge: .owner,
      Confirmation.confirmPassing: .owner,
      Confirmation.cancelAttempt: .owner,
      ConfirmationV1.DesignationServiceMethods.getDesignationState: .services(["vault", "identity"]),
    ]
  }
}
