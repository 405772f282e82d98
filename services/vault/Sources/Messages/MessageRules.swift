internal import API
internal import Primitives
internal import Sealing
internal import ServiceKit

/// What an author wrote, after every check that needs no one else.
struct CheckedContent: Sendable {
  /// One id of a list, with the path of its field for a later complaint.
  struct Entry: Sendable {
    let id: Identifier
    let field: String
  }

  let type: VaultV1.MessageType
  let title: String
  let body: String
  let recipients: [Entry]
  let groups: [Entry]
  let condition: DueCondition?
}

/// When a message is due, counted from the confirmation.
enum DueCondition: Sendable, Equatable {
  case immediate
  /// `minute` counts from midnight in the author's zone; nil means 09:00.
  case date(CivilDate, minute: Int32?)
  case delay(Int32, VaultV1.DelayUnit)
}

/// What a message must be to be kept, and to be ready.
enum MessageRules {
  static let titleCharactersMax = 200
  static let letterBytesMax = 1 << 20
  static let noteCharactersMax = 5000
  static let recipientsMax = 1000
  static let groupsMax = 200
  static let messagesMax = 10_000

  /// Throws INVALID_ARGUMENT that names every field that breaks a rule. A draft may lack anything but its type.
  static func check(
    _ content: VaultV1.MessageContent?, as status: VaultV1.MessageStatus
  ) throws(ServiceError) -> CheckedContent {
    guard let content else { throw .invalid("content", "is missing") }
    var violations = Violations()
    checkType(content.type, &violations)
    let title = violations.attempt { () throws(ServiceError) in
      try Normalisation.line(content.title, field: "content.title", lengths: 0...titleCharactersMax)
    }
    checkBody(content, &violations)
    let recipients = entries(content.recipientIDs, "content.recipient_ids", max: recipientsMax, &violations)
    let groups = entries(content.groupIDs, "content.group_ids", max: groupsMax, &violations)
    let condition = condition(content.deliveryCondition, &violations)
    if status == .ready { checkWhole(content, title: title, condition: condition, &violations) }
    try violations.check()
    return CheckedContent(
      type: content.type, title: title ?? "", body: content.body, recipients: recipients, groups: groups,
      condition: condition)
  }

  /// Whether content may replace a stored message: another type is INVALID_ARGUMENT, another revision ABORTED.
  static func checkReplacement(
    of type: VaultV1.MessageType, revision stored: Int64, by content: CheckedContent, revision: Int64
  ) throws(ServiceError) {
    guard stored == revision else { throw .revisionMismatch() }
    guard type == content.type else { throw .invalid("content.type", "cannot change once the message exists") }
  }

  private static func checkType(_ type: VaultV1.MessageType, _ violations: inout Violations) {
    if type != .letter, type != .note { violations.add("content.type", "must be LETTER or NOTE") }
  }

  private static func checkBody(_ content: VaultV1.MessageContent, _ violations: inout Violations) {
    let field = "content.body"
    if content.body.utf8.count > letterBytesMax {
      violations.add(field, "must have at most 1 MiB")
    } else if content.type == .note, Texts.exceeds(content.body, characters: noteCharactersMax) {
      violations.add(field, "must have at most \(noteCharactersMax) characters")
    } else if Texts.holdsControls(content.body) {
      violations.add(field, "must not hold control characters")
    }
  }

  /// What VA-14, VA-15 and OP-24 ask of a ready message beyond a draft.
  private static func checkWhole(
    _ content: VaultV1.MessageContent, title: String?, condition: DueCondition?, _ violations: inout Violations
  ) {
    if title == "" { violations.add("content.title", "must not be blank") }
    if Texts.isBlank(content.body) { violations.add("content.body", "must not be blank") }
    if content.recipientIDs.isEmpty, content.groupIDs.isEmpty {
      violations.add("content.recipient_ids", "name at least one recipient or group")
    }
    if condition == nil, content.deliveryCondition?.condition == nil {
      violations.add("content.delivery_condition", "is missing")
    }
  }

  /// The ids without repeats.
  private static func entries(
    _ texts: [String], _ field: String, max: Int, _ violations: inout Violations
  ) -> [CheckedContent.Entry] {
    guard texts.count <= max else {
      violations.add(field, "takes at most \(max) entries")
      return []
    }
    var seen: Set<Identifier> = []
    var entries: [CheckedContent.Entry] = []
    for (index, text) in texts.enumerated() {
      let path = "\(field)[\(index)]"
      guard let id = violations.attempt({ () throws(ServiceError) in try Fields.identifier(text, path) }) else {
        continue
      }
      if seen.insert(id).inserted { entries.append(.init(id: id, field: path)) }
    }
    return entries
  }

  private static func condition(
    _ condition: VaultV1.DeliveryCondition?, _ violations: inout Violations
  ) -> DueCondition? {
    let field = "content.delivery_condition"
    switch condition?.condition {
    case nil: return nil
    case .immediate: return .immediate
    case .specificDate(let date): return self.date(date, field + ".specific_date", &violations)
    case .relativeDelay(let delay): return self.delay(delay, field + ".relative_delay", &violations)
    }
  }

  private static func date(
    _ date: VaultV1.SpecificDate, _ field: String, _ violations: inout Violations
  ) -> DueCondition? {
    var minute: Int32?
    if let time = date.time {
      if !(0...23).contains(time.hour) { violations.add(field + ".time.hour", "must be 0 to 23") }
      if !(0...59).contains(time.minute) { violations.add(field + ".time.minute", "must be 0 to 59") }
      minute = (0...23).contains(time.hour) && (0...59).contains(time.minute) ? time.hour * 60 + time.minute : nil
    }
    guard let given = date.date,
      let day = CivilDate(year: Int(given.year), month: Int(given.month), day: Int(given.day))
    else {
      violations.add(field + ".date", date.date == nil ? "is missing" : "is no date of the calendar")
      return nil
    }
    return .date(day, minute: minute)
  }

  private static func delay(
    _ delay: VaultV1.RelativeDelay, _ field: String, _ violations: inout Violations
  ) -> DueCondition? {
    let countMax: Int32? =
      switch delay.unit {
      case .days: 36_500
      case .months: 1200
      case .years: 100
      default: nil
      }
    guard let countMax else {
      violations.add(field + ".unit", "must be DAYS, MONTHS or YEARS")
      return nil
    }
    guard (1...countMax).contains(delay.count) else {
      violations.add(field + ".count", "must be 1 to \(countMax)")
      return nil
    }
    return .delay(delay.count, delay.unit)
  }
}
