internal import API
internal import Primitives

/// A confirmed passing, as confirmation told it.
struct Release: Sendable {
  let account: Identifier
  let confirmation: Identifier
  let administrator: Identifier
  let statement: ConfirmationV1.SignedStatement
  let confirmTime: Instant
}

/// A recipient as they stood at the confirmation.
struct ReleasedRecipient: Sendable {
  let id: Identifier
  let name: String
  let email: String
  let declined: Bool
}

/// A message on its way into the schedule.
struct ReleasedMessage: Sendable {
  let id: Identifier
  let type: DeliveredType
  let condition: Condition
  /// Each once, whether named or reached through a group.
  let recipients: [Identifier]
}

/// The kinds of message, as the schedule stores them.
enum DeliveredType: String, Sendable {
  case letter, note
}

/// When a message is due.
enum Condition: Sendable, Equatable {
  case immediate
  /// Local time of day as `HH:MM`; nil means the usual hour.
  case date(CivilDate, time: String?)
  case delay(count: Int, unit: String)
}
