internal import API
internal import Events
internal import Postgres
internal import Primitives
internal import Protobuf
internal import ServiceKit

/// What delivery reads of others: confirmation says whose messages are released, notifications what has gone out.
enum DeliveryEvents {
  static func subscriptions(_ runtime: ServiceRuntime) throws -> [Subscription] {
    var confirmation = try runtime.subscription(to: "confirmation")
    confirmation.on(ConfirmationV1.PassingConfirmed.self) { event, transaction in
      try await passingConfirmed(event, in: transaction)
    }
    var notifications = try runtime.subscription(to: "notifications")
    notifications.on(NotificationsV1.NotificationSent.self) { event, transaction in
      try await notificationSent(event, in: transaction)
    }
    notifications.on(NotificationsV1.NotificationFailed.self) { event, transaction in
      try await notificationFailed(event, in: transaction)
    }
    return [confirmation, notifications]
  }

  /// Notes the confirmation; the scheduler takes the messages up.
  static func passingConfirmed(_ event: ConfirmationV1.PassingConfirmed, in transaction: Transaction) async throws {
    guard let signed = event.statement else { throw ServiceError.invalid("statement", "is missing") }
    let statement = try ConfirmationV1.ConfirmationStatement(serialized: signed.statement)
    let account = try Fields.identifier(event.accountID, "account_id")
    // What the vault opens is the statement's account: it must be the one whose recipients are asked for.
    guard Identifier(statement.accountID) == account else {
      throw ServiceError.invalid("statement.account_id", "is another account")
    }
    try await AccountStore(transaction).add(
      Release(
        account: account,
        confirmation: try Fields.identifier(event.confirmationID, "confirmation_id"),
        administrator: try Fields.identifier(event.administratorID, "administrator_id"), statement: signed,
        confirmTime: try confirmTime(statement)))
  }

  private static func confirmTime(_ statement: ConfirmationV1.ConfirmationStatement) throws -> Instant {
    guard let time = statement.confirmTime.flatMap({ Instant($0) }) else {
      throw ServiceError.invalid("confirm_time", "is missing")
    }
    return time
  }

  /// A provider took a mail: if it is one of ours, the delivery is sent.
  static func notificationSent(_ event: NotificationsV1.NotificationSent, in transaction: Transaction) async throws {
    guard let delivery = Identifier(event.notificationID),
      let account = try await DeliveryStore(transaction).markSent(delivery)
    else { return }
    try await transaction.publish(
      DeliveryV1.DeliverySent(accountID: "\(account)", deliveryID: "\(delivery)"), subject: account)
  }

  static func notificationFailed(
    _ event: NotificationsV1.NotificationFailed, in transaction: Transaction
  ) async throws {
    guard let delivery = Identifier(event.notificationID) else { return }
    try await DeliveryStore(transaction).markFailed(delivery)
  }
}
