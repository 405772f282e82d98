internal import API
internal import Postgres
internal import Primitives
internal import Sealing
internal import ServiceKit

/// A message as its row holds it, without the body.
struct StoredMessage: Sendable {
  let id: Identifier
  let type: VaultV1.MessageType
  let status: VaultV1.MessageStatus
  let title: String
  let recipients: [Identifier]
  let groups: [Identifier]
  let condition: DueCondition?
  let revision: Int64
  let createTime: Instant
  let updateTime: Instant

  /// The columns that `init` reads, in its order.
  static let columns: Query = """
    message_id, type, status, title, recipient_ids, group_ids, condition, due_date, due_minute, delay_count,
    delay_unit, revision, create_time, update_time
    """

  /// Reads a row that begins with `columns`.
  init(_ row: Row) throws {
    id = try row.decode(Identifier.self, at: 0)
    type = VaultV1.MessageType(rawValue: try row.decode(Int32.self, at: 1))
    status = VaultV1.MessageStatus(rawValue: try row.decode(Int32.self, at: 2))
    title = try row.decode(String.self, at: 3)
    recipients = try row.decode([Identifier].self, at: 4)
    groups = try row.decode([Identifier].self, at: 5)
    condition = DueCondition(
      ConditionColumns(
        kind: try row.decode(Int32?.self, at: 6), date: try row.decode(CivilDate?.self, at: 7),
        minute: try row.decode(Int32?.self, at: 8), count: try row.decode(Int32?.self, at: 9),
        unit: try row.decode(Int32?.self, at: 10)))
    revision = try row.decode(Int64.self, at: 11)
    createTime = try row.decode(Instant.self, at: 12)
    updateTime = try row.decode(Instant.self, at: 13)
  }

  func proto(body: String = "") -> VaultV1.Message {
    VaultV1.Message(
      messageID: "\(id)", status: status,
      content: VaultV1.MessageContent(
        type: type, title: title, body: body, recipientIDs: recipients.map(\.description),
        groupIDs: groups.map(\.description), deliveryCondition: condition?.proto),
      revision: revision, createTime: .init(createTime), updateTime: .init(updateTime))
  }

  var readyProto: VaultV1.ReadyMessage {
    VaultV1.ReadyMessage(
      messageID: "\(id)", type: type, recipientIDs: recipients.map(\.description),
      groupIDs: groups.map(\.description), deliveryCondition: condition?.proto)
  }

  /// Where a body belongs. The status is part of it, so that a draft whose row is made to say "ready" does not open.
  static func binding(_ id: Identifier, _ owner: Identifier, _ status: VaultV1.MessageStatus) -> Binding {
    Binding(table: "messages", column: status == .ready ? "body ready" : "body draft", row: id, owner: owner)
  }
}

/// A condition as columns.
struct ConditionColumns: Sendable {
  var kind: Int32?
  var date: CivilDate?
  var minute: Int32?
  var count: Int32?
  var unit: Int32?

  init(kind: Int32?, date: CivilDate?, minute: Int32?, count: Int32?, unit: Int32?) {
    self.kind = kind
    self.date = date
    self.minute = minute
    self.count = count
    self.unit = unit
  }

  init(_ condition: DueCondition?) {
    switch condition {
    case nil: break
    case .immediate: kind = 1
    case .date(let date, let minute):
      kind = 2
      self.date = date
      self.minute = minute
    case .delay(let count, let unit):
      kind = 3
      self.count = count
      self.unit = unit.rawValue
    }
  }
}

extension DueCondition {
  /// nil when the columns hold none.
  init?(_ columns: ConditionColumns) {
    switch (columns.kind, columns.date, columns.count, columns.unit) {
    case (1, _, _, _): self = .immediate
    case (2, let date?, _, _): self = .date(date, minute: columns.minute)
    case (3, _, let count?, let unit?): self = .delay(count, VaultV1.DelayUnit(rawValue: unit))
    default: return nil
    }
  }

  var proto: VaultV1.DeliveryCondition {
    switch self {
    case .immediate: return .init(condition: .immediate(.init()))
    case .date(let day, let minute):
      let date = CommonV1.Date(year: Int32(day.year), month: Int32(day.month), day: Int32(day.day))
      let time = minute.map { VaultV1.TimeOfDay(hour: $0 / 60, minute: $0 % 60) }
      return .init(condition: .specificDate(.init(date: date, time: time)))
    case .delay(let count, let unit):
      return .init(condition: .relativeDelay(.init(count: count, unit: unit)))
    }
  }
}
