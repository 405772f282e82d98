internal import API
internal import Events
internal import Postgres
internal import Primitives
internal import Protobuf
internal import RPC
internal import Sealing
internal import ServiceKit

/// Takes notifications over from the other services.
struct SendService: NotificationsV1.SendService {
  let database: Database
  let dataKeys: DataKeys
  /// Rings when a notification was taken over.
  let queued = Signal()

  static let access: [MethodDescriptor: Access] = [
    NotificationsV1.SendServiceMethods.send: .services(["identity", "recipients", "confirmation", "delivery", "vault"])
  ]

  func send(
    _ request: NotificationsV1.SendRequest, _ context: CallContext
  ) async throws -> NotificationsV1.SendResponse {
    let id = try Fields.identifier(request.requestID, "request_id")
    let template = try SendRules.check(request)
    let key = try await dataKeys.serviceKey(in: database)
    let content = request.serialized()
    let sealed = try key.seal(content, SendRules.binding(id))
    let digest = key.authenticate(content)
    try await database.transaction { transaction in
      let store = SendStore(transaction)
      if try await store.add(id, kind: template.kind, digest: digest, sealed: sealed) {
        for channel in SendRules.channels(of: template) {
          try await store.addSend(id, channel, template)
        }
      } else if try await !store.holds(id, digest: digest) {
        throw ServiceError(
          .invalidArgument, "request_id: was used before with another request", reason: "REQUEST_ID_REUSED",
          violations: [.init(field: "request_id", description: "was used before with another request")])
      }
    }
    queued.ring()
    return NotificationsV1.SendResponse(notificationID: "\(id)")
  }
}
