internal import API
internal import Events
internal import Postgres
internal import Primitives
internal import RPC
internal import Sealing
internal import ServiceKit

/// What recipients and administrators ask of delivery.
struct DeliveryService: DeliveryV1.DeliveryService {
  let database: Database
  let pageTokens: PageTokenSealer
  let release: VaultV1.ReleaseServiceClient

  static let access: [MethodDescriptor: Access] = [
    DeliveryV1.DeliveryServiceMethods.getLink: .anyone,
    DeliveryV1.DeliveryServiceMethods.openLink: .anyone,
    DeliveryV1.DeliveryServiceMethods.acknowledge: .anyone,
    DeliveryV1.DeliveryServiceMethods.listDeliveries: .owner,
  ]

  func getLink(
    _ request: DeliveryV1.GetLinkRequest, _ context: CallContext
  ) async throws -> DeliveryV1.GetLinkResponse {
    let linked = try await linked(request.token)
    return DeliveryV1.GetLinkResponse(
      senderName: linked.senderName, recipientName: linked.recipientName,
      type: DeliveryV1.DeliveredType(stored: linked.type), deliverTime: .init(linked.dueTime),
      viewTime: linked.viewTime.map { .init($0) })
  }

  func openLink(
    _ request: DeliveryV1.OpenLinkRequest, _ context: CallContext
  ) async throws -> DeliveryV1.OpenLinkResponse {
    let linked = try await linked(request.token)
    var options = context.callOptions()
    options.timeout = .seconds(5)
    // Read first: when the vault is out of reach, nothing is marked.
    let content = try await release.readDelivered(
      .init(statement: linked.statement, messageID: "\(linked.message)"), options)
    let (viewTime, acknowledgeTime) = try await database.transaction { transaction in
      try await LinkStore(transaction).view(linked, traceparent: context.traceparent)
    }
    return DeliveryV1.OpenLinkResponse(
      senderName: linked.senderName, title: content.title, type: DeliveryV1.DeliveredType(stored: linked.type),
      body: content.body, deliverTime: .init(linked.dueTime), viewTime: .init(viewTime),
      acknowledgeTime: acknowledgeTime.map { .init($0) })
  }

  func acknowledge(
    _ request: DeliveryV1.AcknowledgeRequest, _ context: CallContext
  ) async throws -> DeliveryV1.AcknowledgeResponse {
    let linked = try await linked(request.token)
    let time = try await database.transaction { transaction in
      try await LinkStore(transaction).acknowledge(linked, traceparent: context.traceparent)
    }
    return DeliveryV1.AcknowledgeResponse(acknowledgeTime: .init(time))
  }

  func listDeliveries(
    _ request: DeliveryV1.ListDeliveriesRequest, _ context: CallContext
  ) async throws -> DeliveryV1.ListDeliveriesResponse {
    let caller = try context.account()
    let account = try Fields.identifier(request.accountID, "account_id")
    let pageSize = try Fields.pageSize(request.pageSize, default: 50, max: 500)
    let scope = PageScope(pageTokens, context, arguments: account.bytes)
    let after = try scope.open(request.pageToken)
    // The confirming administrator's own list, or none at all: the answer does not say which.
    guard let state = try await StatusStore.state(account, administrator: caller.accountID, in: database) else {
      throw ServiceError.notFound("confirmation")
    }
    var deliveries = try await StatusStore.page(account, after: after, limit: pageSize + 1, in: database)
    var next = ""
    if deliveries.count > pageSize {
      deliveries.removeLast()
      let last = deliveries[pageSize - 1]
      guard let time = last.dueTime.flatMap({ Instant($0) }), let id = Identifier(last.deliveryID) else {
        throw ServiceError.notFound("delivery")
      }
      next = try scope.seal(TimeCursor(time: time, id: id))
    }
    return DeliveryV1.ListDeliveriesResponse(
      deliveries: deliveries, nextPageToken: next, counts: try await StatusStore.counts(account, in: database),
      scheduled: state.scheduled)
  }

  private func linked(_ text: String) async throws -> LinkedDelivery {
    guard let token = LinkToken(text), let linked = try await LinkStore.find(token, in: database) else {
      throw ServiceError.notFound("link")
    }
    return linked
  }
}

extension DeliveryV1.DeliveredType {
  init(stored: String) {
    switch stored {
    case "letter": self = .letter
    case "note": self = .note
    default: self = .unspecified
    }
  }
}
