internal import API
internal import Primitives
internal import ServiceKit

/// How what vault and recipients say becomes a schedule; pure.
enum ScheduleRules {
  /// 09:00 (OP-44).
  static let usualTime = "09:00"

  /// Each recipient once, whether named directly or reached through groups; unknown ids are left out.
  static func audience(
    of message: VaultV1.ReadyMessage, recipients: Set<Identifier>, groups: [Identifier: [Identifier]]
  ) -> [Identifier] {
    var seen: Set<Identifier> = []
    var result: [Identifier] = []
    let direct = message.recipientIDs.compactMap { Identifier($0) }
    let grouped = message.groupIDs.compactMap { Identifier($0) }.flatMap { groups[$0] ?? [] }
    for id in direct + grouped where recipients.contains(id) && seen.insert(id).inserted { result.append(id) }
    return result
  }

  /// A fault here is ours or vault's: the message waits and the log says so, rather than a guess being delivered.
  static func condition(_ condition: VaultV1.DeliveryCondition?) throws(ServiceError) -> Condition {
    switch condition?.condition {
    case .immediate: return .immediate
    case .specificDate(let specific):
      guard let date = specific.date.flatMap({ CivilDate($0) }) else {
        throw .invalid("delivery_condition.specific_date.date", "is no date")
      }
      return .date(date, time: specific.time.map { "\($0.hour):\($0.minute < 10 ? "0" : "")\($0.minute)" })
    case .relativeDelay(let delay):
      guard let unit = unit(delay.unit), delay.count > 0 else {
        throw .invalid("delivery_condition.relative_delay", "is no delay")
      }
      return .delay(count: Int(delay.count), unit: unit)
    case nil: throw .invalid("delivery_condition", "is missing")
    }
  }

  static func type(_ type: VaultV1.MessageType) throws(ServiceError) -> DeliveredType {
    switch type {
    case .letter: .letter
    case .note: .note
    default: throw .invalid("type", "is not known")
    }
  }

  private static func unit(_ unit: VaultV1.DelayUnit) -> String? {
    switch unit {
    case .days: "days"
    case .months: "months"
    case .years: "years"
    default: nil
    }
  }
}
