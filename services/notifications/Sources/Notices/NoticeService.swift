internal import API
internal import Postgres
internal import Primitives
internal import RPC
internal import Sealing
internal import ServiceKit

/// The list inside the app.
struct NoticeService: NotificationsV1.NotificationsService {
  let database: Database
  let dataKeys: DataKeys
  let requests: RequestLog
  let pageTokens: PageTokenSealer

  static let access: [MethodDescriptor: Access] = [
    NotificationsV1.NotificationsServiceMethods.listNotifications: .owner,
    NotificationsV1.NotificationsServiceMethods.markRead: .owner,
  ]

  func listNotifications(
    _ request: NotificationsV1.ListNotificationsRequest, _ context: CallContext
  ) async throws -> NotificationsV1.ListNotificationsResponse {
    let account = try context.account().accountID
    let pageSize = try Fields.pageSize(request.pageSize, default: 20, max: 200)
    let scope = PageScope(pageTokens, context, arguments: [])
    var stored = try await NoticeStore.page(
      account, after: try scope.open(request.pageToken), limit: pageSize + 1, in: database)
    var next = ""
    if stored.count > pageSize {
      stored.removeLast()
      next = try scope.seal(TimeCursor(time: stored[pageSize - 1].createTime, id: stored[pageSize - 1].id))
    }
    return NotificationsV1.ListNotificationsResponse(
      notifications: try await opened(stored, of: account), nextPageToken: next,
      unread: try await NoticeStore.unread(account, in: database))
  }

  func markRead(
    _ request: NotificationsV1.MarkReadRequest, _ context: CallContext
  ) async throws -> NotificationsV1.MarkReadResponse {
    let account = try context.account().accountID
    let ids = try Fields.identifiers(request.notificationIDs, "notification_ids", max: 200)
    return try await requests.once(request.requestID, request, context) { transaction in
      try await NoticeStore.markRead(ids, of: account, in: transaction)
      return NotificationsV1.MarkReadResponse()
    }
  }

  private func opened(
    _ stored: [StoredNotice], of account: Identifier
  ) async throws -> [NotificationsV1.Notification] {
    guard !stored.isEmpty, let key = try await dataKeys.existingKey(for: account, in: database) else { return [] }
    return try stored.map { notice in
      let description = try key.open(notice.sealed, NoticeStore.binding(notice.id, account))
      return NotificationsV1.Notification(
        notificationID: "\(notice.id)", type: NotificationsV1.NotificationType(stored: notice.type),
        description: String(decoding: description, as: UTF8.self), createTime: .init(notice.createTime),
        read: notice.read)
    }
  }
}

extension NotificationsV1.NotificationType {
  init(stored: String) {
    switch stored {
    case "message_received": self = .messageReceived
    case "administrator_role": self = .administratorRole
    case "attempt_opened": self = .attemptOpened
    default: self = .unspecified
    }
  }
}
