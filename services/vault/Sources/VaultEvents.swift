package import API
internal import Events
package import Postgres
internal import Primitives
internal import Sealing
package import ServiceKit

/// What vault does on events of other services: one function each. It publishes MessageSaved and MessageDeleted.
package struct VaultEvents: Sendable {
  private let dataKeys: DataKeys

  package init(_ dataKeys: DataKeys) {
    self.dataKeys = dataKeys
  }

  /// A confirmed passing closes the account, even before delivery asks for its messages.
  package func passingConfirmed(
    _ event: ConfirmationV1.PassingConfirmed, _ transaction: Transaction
  ) async throws {
    try await AccountStore(transaction).freeze(try Fields.identifier(event.accountID, "account_id"))
  }

  /// A removed recipient leaves every message; a ready one that has nobody left is a draft again (OP-27).
  package func recipientRemoved(
    _ event: RecipientsV1.RecipientRemoved, _ transaction: Transaction
  ) async throws {
    try await remove(.recipient(try Fields.identifier(event.recipientID, "recipient_id")), event.accountID, transaction)
  }

  /// A deleted group leaves every message, as a removed recipient does.
  package func groupChanged(
    _ event: RecipientsV1.GroupChanged, _ transaction: Transaction
  ) async throws {
    guard event.deleted else { return }
    try await remove(.group(try Fields.identifier(event.groupID, "group_id")), event.accountID, transaction)
  }

  private func remove(_ member: AudienceMember, _ account: String, _ transaction: Transaction) async throws {
    let owner = try Fields.identifier(account, "account_id")
    // What is frozen stays as it was confirmed.
    guard try await AccountStore(transaction).lock(owner) == nil else { return }
    let store = MessageStore(transaction)
    let key = try await dataKeys.key(for: owner, in: transaction)
    var changed: [VaultV1.MessageSaved] = []
    for id in try await store.readyOnly(for: member, of: owner) {
      let body = try key.open(try await store.body(of: id), StoredMessage.binding(id, owner, .ready))
      try await store.makeDraft(id, sealed: try key.seal(body, StoredMessage.binding(id, owner, .draft)))
      changed.append(VaultV1.MessageSaved(accountID: "\(owner)", messageID: "\(id)", ready: false))
    }
    try await store.remove(member, of: owner)
    try await transaction.publish(changed, subject: owner)
  }
}
