import API
import Postgres
import Primitives
import RPC
import Synchronization
import TestKit
import Testing

@testable import notifications

@Suite struct NoticeTests {
  @Test("NO-10 DE-9 who has an account with the address is told inside the app; nobody else is")
  func known() async throws {
    try await NotificationsFixture.with { fixture in
      let account = Identifier()
      fixture.accounts.byEmail.withLock { $0["anna@example.com"] = account }
      try await fixture.send(fixture.request())
      try await fixture.send(fixture.request(to: "bert@example.com"))
      try await fixture.work()
      let list = try await fixture.list(account)
      #expect(list.notifications.map(\.description) == ["A message from Karl has come for you."])
      #expect(list.notifications.map(\.type) == [.messageReceived] && list.unread == 1)
      #expect(try await fixture.log("in_app").sorted() == ["queued", "queued", "sent", "skipped no account"])
      #expect(try await fixture.texts("SELECT account_id::text FROM notices") == ["\(account)"])
      #expect(try await fixture.list(Identifier()).notifications.isEmpty)
      let stored = try await fixture.texts("SELECT notices::text || encode(sealed_description, 'escape') FROM notices")
      #expect(!stored.joined().contains("Karl"))
    }
  }

  @Test("NO-10 a named account is told without asking identity, and only of what concerns it")
  func named() async throws {
    try await NotificationsFixture.with { fixture in
      fixture.accounts.isAway.withLock { $0 = true }
      let account = Identifier()
      try await fixture.send(fixture.request(account: account, .roleNotice(.init(senderName: "Karl"))))
      try await fixture.send(fixture.request(account: account, .attemptAlert(.init(administratorName: "Eva"))))
      try await fixture.send(fixture.request(account: account, .challengeCode(.init(code: "123456", subjectName: "K"))))
      try await fixture.work()
      let list = try await fixture.list(account)
      #expect(Set(list.notifications.map(\.type)) == [.administratorRole, .attemptOpened])
    }
  }

  @Test("NO-10 while identity is away the notice waits and the mail does not")
  func identityAway() async throws {
    try await NotificationsFixture.with { fixture in
      fixture.accounts.isAway.withLock { $0 = true }
      try await fixture.send(fixture.request())
      try await fixture.work()
      #expect(try await fixture.sends() == ["email sent 1", "in_app pending 1"])
      #expect(try await fixture.log("in_app") == ["queued", "retried UNAVAILABLE"])
      let account = Identifier()
      fixture.accounts.byEmail.withLock { $0["anna@example.com"] = account }
      fixture.accounts.isAway.withLock { $0 = false }
      try await fixture.letTimePass()
      try await fixture.work()
      #expect(try await fixture.list(account).unread == 1)
    }
  }

  /// An account with `count` notices.
  private func told(_ count: Int, _ body: (NotificationsFixture, Identifier) async throws -> Void) async throws {
    try await NotificationsFixture.with { fixture in
      let account = Identifier()
      for number in 0..<count {
        try await fixture.send(fixture.request(account: account, .roleNotice(.init(senderName: "\(number)"))))
        try await fixture.work()
      }
      try await body(fixture, account)
    }
  }

  @Test("NO-10 notices come newest first, page by page, and a token is of no use to others")
  func pages() async throws {
    try await told(5) { fixture, account in
      let first = try await fixture.list(account, size: 3)
      let second = try await fixture.list(account, size: 3, token: first.nextPageToken)
      let names = (first.notifications + second.notifications).map(\.description)
      #expect(names == (0..<5).reversed().map { "\($0) has named you as administrator." })
      #expect(second.nextPageToken.isEmpty && first.unread == 5)
      let foreign = try await refusal { try await fixture.list(Identifier(), token: first.nextPageToken) }
      #expect(foreign.code == .invalidArgument)
      #expect(try await refusal { try await fixture.list(account, size: -1) }.code == .invalidArgument)
    }
  }

  @Test("NO-10 a notice is marked as read by its owner only, once, and a repeat changes nothing")
  func read() async throws {
    try await told(2) { fixture, account in
      let id = try await fixture.list(account).notifications[0].notificationID
      func mark(_ caller: Identifier, _ request: Identifier = Identifier()) async throws {
        _ = try await fixture.notices.markRead(
          .init(requestID: "\(request)", notificationIDs: [id]), .owner(caller, NotificationsFixture.Calls.markRead))
      }
      try await mark(Identifier())
      #expect(try await fixture.list(account).unread == 2)
      let request = Identifier()
      for _ in 0..<2 { try await mark(account, request) }
      let list = try await fixture.list(account)
      #expect(list.unread == 1 && list.notifications.first { $0.read }?.notificationID == id)
      let wrong = try await refusal {
        try await fixture.notices.markRead(
          .init(requestID: "\(Identifier())", notificationIDs: ["x"]),
          .owner(account, NotificationsFixture.Calls.markRead))
      }
      #expect(wrong.violations.map(\.field) == ["notification_ids[0]"])
    }
  }
}
