internal import API
internal import Events
package import RPC
package import ServiceKit

/// How vault is put together, and who may call what.
package enum VaultParts {
  package static func make(_ runtime: ServiceRuntime, _ config: VaultConfig) throws -> ServiceParts {
    let events = VaultEvents(runtime.dataKeys)
    var confirmation = try runtime.subscription(to: "confirmation")
    confirmation.on(ConfirmationV1.PassingConfirmed.self, events.passingConfirmed)
    var recipients = try runtime.subscription(to: "recipients")
    recipients.on(RecipientsV1.RecipientRemoved.self, events.recipientRemoved)
    recipients.on(RecipientsV1.GroupChanged.self, events.groupChanged)
    return ServiceParts(
      services: [try VaultService(runtime), ReleaseService(runtime, ReleaseRules(keys: config.statementKeys))],
      access: access, subscriptions: [confirmation, recipients])
  }

  package static var access: [MethodDescriptor: Access] {
    typealias Vault = VaultV1.VaultServiceMethods
    typealias Release = VaultV1.ReleaseServiceMethods
    return [
      Vault.saveDraft: .owner,
      Vault.saveToVault: .owner,
      Vault.getMessage: .owner,
      Vault.listMessages: .owner,
      Vault.getSummary: .owner,
      Vault.deleteMessage: .owner,
      Vault.saveFolderItem: .owner,
      Vault.getFolderItem: .owner,
      Vault.listFolderItems: .owner,
      Vault.deleteFolderItem: .owner,
      Release.listReady: .services(["delivery"]),
      Release.readDelivered: .services(["delivery"]),
    ]
  }
}
