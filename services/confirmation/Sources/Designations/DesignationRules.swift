internal import API
internal import Primitives
internal import Sealing

/// Which designation.
enum Role: String, Sendable, CaseIterable {
  case administrator, backup

  var number: Int32 { self == .administrator ? 1 : 2 }
  var wire: ConfirmationV1.Role { self == .administrator ? .administrator : .backup }

  init?(_ role: ConfirmationV1.Role) {
    switch role {
    case .administrator: self = .administrator
    case .backup: self = .backup
    default: return nil
    }
  }
}

/// Someone to designate, with everything checked.
struct Designee: Sendable, Equatable {
  let recipient: Identifier?
  let name: String
  let email: String
  let phone: String

  var emailKey: String { Normalisation.emailKey(email) }
}

/// A designation as stored.
struct Designation: Sendable {
  let id: Identifier
  let account: Identifier
  let role: Role
  let designee: Designee
  let createTime: Instant

  var wire: ConfirmationV1.Designation {
    ConfirmationV1.Designation(
      designationID: "\(id)", role: role.wire,
      contact: .init(name: designee.name, email: designee.email, phone: designee.phone),
      recipientID: designee.recipient.map { "\($0)" } ?? "", createTime: .init(createTime))
  }
}

/// Who can be designated; pure.
enum DesignationRules {
  /// A newly entered person. Violations name the fields below `path`.
  static func contact(_ contact: ConfirmationV1.Contact, path: String) throws(ServiceError) -> Designee {
    var violations: [ServiceError.FieldViolation] = []
    var name = ""
    do {
      name = try Normalisation.displayName(contact.name, field: "\(path).contact.name", lengths: 1...80)
    } catch {
      violations += error.violations
    }
    let email = Normalisation.email(contact.email)
    if email == nil { violations.append(.init(field: "\(path).contact.email", description: "must be an address")) }
    let phone = contact.phone.isEmpty ? "" : Normalisation.phone(contact.phone)
    if phone == nil {
      violations.append(.init(field: "\(path).contact.phone", description: "must be + and 8 to 15 digits"))
    }
    guard let email, let phone, violations.isEmpty else { throw .invalid(violations) }
    return Designee(recipient: nil, name: name, email: email, phone: phone)
  }

  /// Neither may be the owner, and they must differ (OP-36).
  static func check(administrator: Designee, backup: Designee?, ownEmailKey: String) throws(ServiceError) {
    if administrator.emailKey == ownEmailKey {
      throw .invalid("administrator", "must be someone else than you")
    }
    if let backup {
      if backup.emailKey == ownEmailKey { throw .invalid("backup", "must be someone else than you") }
      if backup.emailKey == administrator.emailKey {
        throw .invalid("backup", "must be someone else than the administrator")
      }
    }
  }
}
