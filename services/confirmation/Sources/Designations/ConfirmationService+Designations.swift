package import API
internal import Events
internal import Postgres
internal import Primitives
package import RPC
internal import ServiceKit

extension ConfirmationService {
  package func designate(
    _ request: ConfirmationV1.DesignateRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.DesignateResponse {
    let account = try context.account().accountID
    guard let first = request.administrator else { throw ServiceError.invalid("administrator", "is required") }
    return try await requests.once(request.requestID, request, context) {
      let owner = try await actor(context)
      let administrator = try await designee(first, path: "administrator", of: account, context)
      var backup: Designee?
      if let second = request.backup { backup = try await designee(second, path: "backup", of: account, context) }
      try DesignationRules.check(administrator: administrator, backup: backup, ownEmailKey: owner.emailKey)
      return (owner, administrator, backup)
    } _: { prepared, transaction in
      let (owner, administrator, backup) = prepared
      let store = DesignationStore(transaction)
      try await store.lock(account)
      try await requireOpen(account, transaction)
      let current = try await store.current(of: account)
      for (role, wanted) in [(Role.administrator, administrator), (.backup, backup)] {
        try await set(role, wanted, of: owner, current.first { $0.role == role }, transaction, context)
      }
      return ConfirmationV1.DesignateResponse(designations: try await store.current(of: account).map(\.wire))
    }
  }

  package func getDesignations(
    _ request: ConfirmationV1.GetDesignationsRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.GetDesignationsResponse {
    let current = try await DesignationStore.current(of: try context.account().accountID, in: database)
    return ConfirmationV1.GetDesignationsResponse(designations: current.map(\.wire))
  }

  package func removeDesignation(
    _ request: ConfirmationV1.RemoveDesignationRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.RemoveDesignationResponse {
    let account = try context.account().accountID
    guard let role = Role(request.role) else { throw ServiceError.invalid("role", "is required") }
    return try await requests.once(request.requestID, request, context) {
      try await caller(context)
    } _: { owner, transaction in
      let store = DesignationStore(transaction)
      try await store.lock(account)
      try await requireOpen(account, transaction)
      let current = try await store.current(of: account)
      guard current.contains(where: { $0.role == role }) else { throw ServiceError.notFound("designation") }
      // Without an administrator there is nobody for the backup to stand in for (OP-38).
      for designation in current where role == .administrator || designation.role == role {
        try await end(designation, of: owner, transaction, context)
      }
      return ConfirmationV1.RemoveDesignationResponse()
    }
  }

  package func listVerifications(
    _ request: ConfirmationV1.ListVerificationsRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.ListVerificationsResponse {
    let administrator = try await actor(context)
    let found = try await DesignationStore.verifications(of: administrator.emailKey, in: database)
    let owners = try await people.people(found.map(\.designation.account), context)
    return ConfirmationV1.ListVerificationsResponse(
      verifications: found.compactMap { designation, confirmed in
        guard let owner = owners[designation.account] else { return nil }
        return ConfirmationV1.Verification(
          designationID: "\(designation.id)", accountID: "\(owner.account)", displayName: owner.name,
          designateTime: .init(designation.createTime), status: confirmed ? .confirmed : .active)
      })
  }

  private func designee(
    _ designee: ConfirmationV1.Designee, path: String, of owner: Identifier, _ context: CallContext
  ) async throws -> Designee {
    switch designee.person {
    case .contact(let contact): return try DesignationRules.contact(contact, path: path)
    case .recipientID(let text):
      let id = try Fields.identifier(text, "\(path).recipient_id")
      guard let recipient = try await people.recipient(id, of: owner, context) else {
        throw ServiceError.notFound("recipient")
      }
      return Designee(recipient: id, name: recipient.name, email: recipient.email, phone: recipient.phone)
    case nil: throw ServiceError.invalid(path, "must name a recipient or a contact")
    }
  }

  /// Brings one role to what is wanted. The same person stays who they are, whatever changed about them: nobody is
  /// told, and their open attempt goes on.
  private func set(
    _ role: Role, _ wanted: Designee?, of owner: Person, _ current: Designation?, _ transaction: Transaction,
    _ context: CallContext
  ) async throws {
    if let current {
      if let wanted, wanted.emailKey == current.designee.emailKey {
        if wanted != current.designee { try await DesignationStore(transaction).update(current.id, wanted) }
        return
      }
      try await end(current, of: owner, transaction, context)
    }
    guard let wanted else { return }
    let designation = Designation(
      id: Identifier(), account: owner.account, role: role, designee: wanted, createTime: .now())
    try await DesignationStore(transaction).add(designation)
    try await courier.enqueue(notice(designation, of: owner, removed: false), in: transaction)
    try await transaction.publish(
      ConfirmationV1.AdministratorDesignated(
        accountID: "\(owner.account)", designationID: "\(designation.id)", role: role.number),
      subject: owner.account, traceparent: context.traceparent)
    try await AuditStore(transaction).add(
      "designated_\(role.rawValue)", owner.account, by: owner.account, designation.id)
  }

  private func end(
    _ designation: Designation, of owner: Person, _ transaction: Transaction, _ context: CallContext
  ) async throws {
    try await DesignationStore(transaction).remove(designation.id)
    try await endAttempts(of: designation, reason: "designation_removed", by: owner.account, transaction, context)
    try await courier.enqueue(notice(designation, of: owner, removed: true), in: transaction)
    try await transaction.publish(
      ConfirmationV1.DesignationRemoved(accountID: "\(owner.account)", designationID: "\(designation.id)"),
      subject: owner.account, traceparent: context.traceparent)
    try await AuditStore(transaction).add("designation_removed", owner.account, by: owner.account, designation.id)
  }

  private func notice(
    _ designation: Designation, of owner: Person, removed: Bool
  ) -> NotificationsV1.SendRequest {
    NotificationsV1.SendRequest(
      requestID: "\(Identifier())",
      addressee: .init(name: designation.designee.name, email: designation.designee.email),
      content: .roleNotice(
        .init(senderName: owner.name, backup: designation.role == .backup, removed: removed)))
  }

  /// FAILED_PRECONDITION (ACCOUNT_CLOSED) once a passing is confirmed.
  func requireOpen(_ account: Identifier, _ transaction: Transaction) async throws {
    if try await ConfirmationStore(transaction).find(account) != nil {
      throw ServiceError.precondition("ACCOUNT_CLOSED", "Nothing can be changed any more.")
    }
  }
}
