internal import API
internal import Primitives
internal import Sealing

/// What an author says about a recipient, checked.
struct RecipientFields: Sendable, Equatable {
  var name: String
  var email: String
  /// Empty when there is none.
  var phone: String
  var relationship: Relationship

  var emailKey: String { Normalisation.emailKey(email) }
}

/// How the person stands to the author.
enum Relationship: String, Sendable, CaseIterable {
  case family, friend, colleague, other

  init?(_ relationship: RecipientsV1.Relationship) {
    switch relationship {
    case .family: self = .family
    case .friend: self = .friend
    case .colleague: self = .colleague
    case .other: self = .other
    default: return nil
    }
  }

  var wire: RecipientsV1.Relationship {
    switch self {
    case .family: .family
    case .friend: .friend
    case .colleague: .colleague
    case .other: .other
    }
  }
}

/// What the person answered.
enum Acceptance: String, Sendable, CaseIterable {
  case pending, accepted, declined

  init?(_ acceptance: RecipientsV1.Acceptance) {
    switch acceptance {
    case .pending: self = .pending
    case .accepted: self = .accepted
    case .declined: self = .declined
    default: return nil
    }
  }

  var wire: RecipientsV1.Acceptance {
    switch self {
    case .pending: .pending
    case .accepted: .accepted
    case .declined: .declined
    }
  }
}

/// Checks of what authors enter; pure.
enum RecipientRules {
  static let recipientsMax = 1000
  static let groupsMax = 200
  static let groupsOfOneMax = 50

  /// All fields at once; every fault is named.
  static func fields(
    name: String, email: String, phone: String, relationship: RecipientsV1.Relationship, prefix: String = ""
  ) throws(ServiceError) -> RecipientFields {
    var violations: [ServiceError.FieldViolation] = []
    func fault(_ field: String, _ text: String) { violations.append(.init(field: prefix + field, description: text)) }
    var checkedName = ""
    do {
      checkedName = try Normalisation.displayName(name, field: prefix + "name", lengths: 1...80)
    } catch {
      violations += error.violations
    }
    let checkedEmail = Normalisation.email(email)
    if checkedEmail == nil { fault("email", "must be an address") }
    let checkedPhone = phone.isEmpty ? "" : Normalisation.phone(phone)
    if checkedPhone == nil { fault("phone", "must be + and 8 to 15 digits") }
    let checkedRelationship = Relationship(relationship)
    if checkedRelationship == nil { fault("relationship", "is required") }
    guard let checkedEmail, let checkedPhone, let checkedRelationship, violations.isEmpty else {
      throw .invalid(violations)
    }
    return RecipientFields(
      name: checkedName, email: checkedEmail, phone: checkedPhone, relationship: checkedRelationship)
  }

  /// Channels of a prompt, each once. FAILED_PRECONDITION (NO_PHONE) for a text without a number.
  static func channels(
    _ channels: [RecipientsV1.PromptChannel], phone: String, field: String
  ) throws(ServiceError) -> Set<String> {
    var result: Set<String> = []
    for (index, channel) in channels.enumerated() {
      switch channel {
      case .email: result.insert("email")
      case .text:
        if phone.isEmpty { throw .precondition("NO_PHONE", "A prompt by text needs a phone number.") }
        result.insert("text")
      default: throw .invalid("\(field)[\(index)]", "is not a channel")
      }
    }
    return result
  }

  /// Which fields an update names; an absent mask means all four.
  static func mask(_ paths: [String]?) throws(ServiceError) -> Set<String> {
    let known: Set<String> = ["name", "email", "phone", "relationship"]
    guard let paths, !paths.isEmpty else { return known }
    for path in paths where !known.contains(path) {
      throw .invalid("update_mask", "knows name, email, phone and relationship, not \(path.prefix(40))")
    }
    return Set(paths)
  }
}
