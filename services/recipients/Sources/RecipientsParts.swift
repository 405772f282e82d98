internal import API
package import RPC
package import ServiceKit

/// How recipients is put together, and who may call what.
package enum RecipientsParts {
  package static func make(_ runtime: ServiceRuntime) throws -> ServiceParts {
    let service = try RecipientsService(runtime)
    return ServiceParts(
      services: [service, AudienceService(runtime)], access: access,
      workers: [Worker("courier") { await service.courier.run() }])
  }

  package static var access: [MethodDescriptor: Access] {
    typealias Recipients = RecipientsV1.RecipientsServiceMethods
    typealias Audience = RecipientsV1.AudienceServiceMethods
    return [
      Recipients.addRecipient: .owner,
      Recipients.getRecipient: .owner,
      Recipients.listRecipients: .owner,
      Recipients.updateRecipient: .owner,
      Recipients.removeRecipient: .owner,
      Recipients.createGroup: .owner,
      Recipients.getGroup: .owner,
      Recipients.listGroups: .owner,
      Recipients.updateGroup: .owner,
      Recipients.deleteGroup: .owner,
      Recipients.sendPrompt: .owner,
      Recipients.getPrompt: .anyone,
      Recipients.answerPrompt: .anyone,
      Audience.checkAudience: .services(["vault", "confirmation"]),
      Audience.freezeAudience: .services(["delivery"]),
    ]
  }
}
