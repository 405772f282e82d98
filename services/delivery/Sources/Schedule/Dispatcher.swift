internal import API
internal import Events
internal import Postgres
internal import Primitives
internal import Sealing
internal import ServiceKit

/// Hands due deliveries over: link, queue entry and mark are one transaction, so a delivery is handed over once or not
/// at all, and its id keeps the notification from being sent twice.
struct Dispatcher: Sendable {
  let database: Database
  let courier: Courier
  let publicURL: String
  /// Rings when new deliveries stand in the schedule.
  let wake: Signal
  private let batchSize = 200

  func run() async {
    var backoff = Backoff()
    while !Task.isCancelled {
      let seen = wake.count
      do {
        if try await dispatch() == 0 {
          let next = try await DeliveryStore.untilNextDue(in: database) ?? .seconds(30)
          await wake.wait(after: seen, timeout: min(max(next, .milliseconds(10)), .seconds(30)))
        }
        backoff.reset()
      } catch {
        if Task.isCancelled { return }
        Log.warning("due deliveries not handed over", ["error": .text("\(error)")])
        await pause(backoff.next())
      }
    }
  }

  /// Hands one batch over; returns how many.
  func dispatch() async throws -> Int {
    try await database.transaction { transaction in
      let store = DeliveryStore(transaction)
      let due = try await store.claimDue(limit: batchSize)
      if due.isEmpty { return 0 }
      let tokens = due.map { _ in LinkToken.random() }
      try await store.handOver(due, linkHashes: tokens.map(\.hash))
      let ungreeted = try await store.greet(due)
      try await courier.enqueue(notices(due, tokens, ungreeted), in: transaction)
      for (account, deliveries) in Dictionary(grouping: due, by: \.account) {
        let events = deliveries.map { DeliveryV1.DeliveryDue(accountID: "\(account)", deliveryID: "\($0.id)") }
        try await transaction.publish(events, subject: account)
      }
      return due.count
    }
  }

  private func notices(
    _ due: [DueDelivery], _ tokens: [LinkToken], _ ungreeted: Set<Recipient>
  ) -> [NotificationsV1.SendRequest] {
    var ungreeted = ungreeted
    return zip(due, tokens).map { delivery, token in
      let firstWord = ungreeted.remove(Recipient(account: delivery.account, id: delivery.recipient)) != nil
      return NotificationsV1.SendRequest(
        requestID: "\(delivery.id)", addressee: .init(name: delivery.name, email: delivery.email),
        content: .messageNotice(
          .init(
            senderName: delivery.senderName, link: "\(publicURL)/message/\(token.text.reveal())",
            firstWord: firstWord)))
    }
  }
}
