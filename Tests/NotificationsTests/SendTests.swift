import API
import EventLoop
import Events
import Postgres
import Primitives
import RPC
import ServiceKit
import Synchronization
import TestKit
import Testing

@testable import notifications

@Suite struct SendTests {
  @Test("notifications lists every migration file, and serves what its access tables name")
  func setUp() {
    #expect(Migrations.all.map(\.name) == migrationFiles(of: "notifications"))
    #expect(Set(SendService.access.keys) == Set(SendService.descriptor.methods))
    #expect(Set(NoticeService.access.keys) == Set(NoticeService.descriptor.methods))
    #expect(NoticeService.access.values.allSatisfy { $0 == .owner })
  }

  @Test("NO-1 NO-6 a notification becomes one mail with its link, however often it is asked for")
  func once() async throws {
    try await NotificationsFixture.with { fixture in
      let id = Identifier()
      let request = fixture.request(id, to: "anna@example.com")
      for _ in 0..<3 { #expect(try await fixture.send(request).notificationID == "\(id)") }
      try await fixture.work()
      try await fixture.send(request)
      try await fixture.work()
      let mails = try fixture.mail.mails()
      try #require(mails.count == 1)
      #expect(mails[0].recipient == "anna@example.com" && mails[0].subject == "A message from Karl")
      #expect(mails[0].messageID == "<\(id)@afterthoughts.example>")
      #expect(mails[0].text.contains(NotificationsFixture.link) && mails[0].text.contains("Dear Anna,"))
      #expect(mails[0].html.contains("href=\"\(NotificationsFixture.link)\""))
      #expect(try await fixture.sends() == ["email sent 1", "in_app skipped 1"])
      #expect(try await fixture.log() == ["queued", "sent"])
      #expect(try await fixture.events() == ["NotificationSent"])
    }
  }

  @Test("D1 many calls at once with one id are one notification")
  func parallel() async throws {
    try await NotificationsFixture.with { fixture in
      let request = fixture.request()
      let service = fixture.service
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<20 {
          group.addTask {
            _ = try await patiently {
              try await service.send(request, .service("delivery", NotificationsV1.SendServiceMethods.send))
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await fixture.log() == ["queued"])
    }
  }

  @Test("D1 the id with another content is refused, also after the first was wiped")
  func reused() async throws {
    try await NotificationsFixture.with { fixture in
      let id = Identifier()
      try await fixture.send(fixture.request(id))
      for _ in 0..<2 {
        let refused = try await refusal { try await fixture.send(fixture.request(id, name: "Bert")) }
        #expect(refused.code == .invalidArgument && refused.reason == "REQUEST_ID_REUSED")
        try await fixture.work()
      }
      #expect(try fixture.mail.mails().count == 1)
    }
  }

  @Test("NO-1 line breaks, missing parts and wrong addresses are refused by name, and nothing is stored")
  func refused() async throws {
    try await NotificationsFixture.with { fixture in
      typealias Content = NotificationsV1.SendRequest.Content
      func notice(_ sender: String, _ link: String = NotificationsFixture.link) -> Content {
        .messageNotice(.init(senderName: sender, link: link))
      }
      var bare = fixture.request()
      bare.content = nil
      var lone = fixture.request()
      lone.addressee = nil
      var unnamed = fixture.request()
      unnamed.requestID = "x"
      let cases: [(NotificationsV1.SendRequest, [String])] = [
        (fixture.request(name: "Anna\r\nBcc: x@example.com"), ["addressee.name"]),
        (fixture.request(name: "Anna\n"), ["addressee.name"]),
        (fixture.request(name: "Anna\u{85}"), ["addressee.name"]),
        (fixture.request(name: ""), ["addressee.name"]),
        (fixture.request(name: String(repeating: "a", count: 201)), ["addressee.name"]),
        (fixture.request(to: "anna@example.com\r\nRCPT TO:<x@example.com>"), ["addressee.email"]),
        (fixture.request(to: "anna"), ["addressee.email"]),
        (fixture.request(notice("Karl\nx")), ["message_notice.sender_name"]),
        (fixture.request(notice("Karl", "https://x\r\n")), ["message_notice.link"]),
        (fixture.request(notice("", "")), ["message_notice.sender_name", "message_notice.link"]),
        (fixture.request(.passingNotice(.init(subjectName: "K\r"))), ["passing_notice.subject_name"]),
        (bare, ["content"]), (lone, ["addressee.email", "addressee.name"]), (unnamed, ["request_id"]),
      ]
      for (request, fields) in cases {
        let refused = try await refusal { try await fixture.send(request) }
        #expect(refused.code == .invalidArgument && refused.violations.map(\.field) == fields)
      }
      #expect(try await fixture.texts("SELECT kind FROM notifications").isEmpty)
      try await fixture.send(fixture.request(name: String(repeating: "a", count: 200)))
    }
  }

  @Test("D6 a 4xx is tried again, then accepted; each try is in the log")
  func putOff() async throws {
    try await NotificationsFixture.with { fixture in
      try await fixture.send(fixture.request(to: "r450x2@example.com", .emailVerification(.init(link: "https://x"))))
      try await fixture.work()
      #expect(try await fixture.sends() == ["email pending 1"])
      try await fixture.work()
      #expect(try await fixture.sends() == ["email pending 1"])
      for _ in 0..<2 {
        try await fixture.letTimePass()
        try await fixture.work()
      }
      #expect(try await fixture.log() == ["queued", "retried answered 450", "retried answered 450", "sent"])
      #expect(try fixture.mail.mails().count == 1)
      #expect(try await fixture.events() == ["NotificationSent"])
    }
  }

  @Test("D6 a 5xx fails at once, with an event, and is never tried again")
  func refusedForGood() async throws {
    try await NotificationsFixture.with { fixture in
      try await fixture.send(fixture.request(to: "r550@example.com", .emailVerification(.init(link: "https://x"))))
      try await fixture.work()
      try await fixture.letTimePass()
      try await fixture.work()
      #expect(try await fixture.sends() == ["email failed 1"])
      #expect(try await fixture.log() == ["queued", "failed refused 550"])
      #expect(try await fixture.events() == ["NotificationFailed"])
    }
  }

  @Test("OP-51 after 72 h of failures a channel gives up, and not before")
  func givesUp() async throws {
    try await NotificationsFixture.with { fixture in
      fixture.accounts.isAway.withLock { $0 = true }
      try await fixture.send(fixture.request(to: "r450@example.com"))
      try await fixture.letTimePass(age: "71 hours 59 minutes")
      try await fixture.work()
      #expect(try await fixture.sends() == ["email pending 1", "in_app pending 1"])
      try await fixture.letTimePass(age: "1 minute 1 second")
      try await fixture.work()
      #expect(try await fixture.sends() == ["email failed 2", "in_app failed 2"])
      #expect(try await fixture.log().last == "failed gave up: answered 450")
      #expect(try await fixture.log("in_app").last == "failed gave up: UNAVAILABLE")
      #expect(try await fixture.texts("SELECT kind FROM notifications WHERE sealed IS NOT NULL").isEmpty)
    }
  }

  @Test("D6 no mail server is no answer: the mail waits")
  func noServer() async throws {
    try await NotificationsFixture.with(mailPort: 1) { fixture in
      try await fixture.send(fixture.request(.emailVerification(.init(link: "https://x"))))
      try await fixture.work()
      #expect(try await fixture.log() == ["queued", "retried no answer"])
    }
  }

  @Test("D6 a lost answer is asked for again, with the same Message-ID")
  func lostAnswer() async throws {
    try await NotificationsFixture.with { fixture in
      try await fixture.send(fixture.request(to: "lost@example.com", .emailVerification(.init(link: "https://x"))))
      try await fixture.work()
      #expect(try await fixture.sends() == ["email pending 1"])
      try await fixture.letTimePass()
      try await fixture.work()
      let mails = try fixture.mail.mails()
      #expect(mails.count == 2 && Set(mails.map(\.messageID)).count == 1 && Set(mails.map(\.date)).count == 1)
    }
  }

  @Test("D6 a send whose worker was killed is left alone while it is leased, then sent with the same Message-ID")
  func killed() async throws {
    try await NotificationsFixture.with { fixture in
      let id = Identifier()
      try await fixture.send(fixture.request(id, .emailVerification(.init(link: "https://x"))))
      let claimed = try await fixture.database.transaction { try await SendStore($0).claimDue(.email, limit: 10) }
      #expect(claimed.map(\.id) == [id])
      try await fixture.work()
      #expect(try fixture.mail.mails().isEmpty)
      try await fixture.database.execute("UPDATE sends SET lease_time = lease_time - interval '30 s'")
      try await fixture.work()
      #expect(try fixture.mail.mails().map(\.messageID) == ["<\(id)@afterthoughts.example>"])
      #expect(try await fixture.sends() == ["email sent 2"])
      // The first one comes back to life: what it has to say no longer counts.
      let template = try #require(Template(.emailVerification(.init(link: "https://x"))))
      try await fixture.database.transaction { transaction in
        try await SendStore(transaction).postpone(claimed[0], template, reason: "late")
        #expect(try await !SendStore(transaction).end(claimed[0], "failed", template))
      }
      #expect(try await fixture.log() == ["queued", "sent"])
    }
  }

  @Test("D6 a send is leased for longer than a mail may take, and taken by one worker only")
  func lease() async throws {
    try await NotificationsFixture.with { fixture in
      #expect(SendRules.mailTimeout < .seconds(SendRules.leaseSeconds))
      for _ in 0..<20 { try await fixture.send(fixture.request(.emailVerification(.init(link: "https://x")))) }
      let database = fixture.database
      let claimed = try await withThrowingTaskGroup(of: [Identifier].self) { group in
        for _ in 0..<4 {
          group.addTask {
            try await database.transaction { try await SendStore($0).claimDue(.email, limit: 20) }.map(\.id)
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(claimed.count == 20 && Set(claimed).count == 20)
    }
  }

  @Test("D6 one that was put off by a worker whose lease had run out stays with the worker that has it now")
  func stale() async throws {
    try await NotificationsFixture.with { fixture in
      try await fixture.send(fixture.request(.emailVerification(.init(link: "https://x"))))
      let first = try await fixture.database.transaction { try await SendStore($0).claimDue(.email, limit: 1) }[0]
      try await fixture.database.execute("UPDATE sends SET lease_time = now() - interval '1 s'")
      _ = try await fixture.database.transaction { try await SendStore($0).claimDue(.email, limit: 1) }
      let template = try #require(Template(.emailVerification(.init(link: "https://x"))))
      try await fixture.database.transaction { try await SendStore($0).postpone(first, template, reason: "late") }
      #expect(try await fixture.texts("SELECT (lease_time > now())::text FROM sends") == ["true"])
      #expect(try await fixture.log() == ["queued"])
    }
  }

  @Test("OP-57 the log is only ever added to")
  func log() async throws {
    try await NotificationsFixture.with { fixture in
      try await fixture.send(fixture.request())
      for change: Query in [
        "UPDATE notification_log SET event = 'sent'", "DELETE FROM notification_log", "TRUNCATE notification_log",
        "DELETE FROM notification_log WHERE false",
      ] {
        await #expect(throws: PostgresError.self) { try await fixture.database.execute(change) }
      }
      #expect(try await fixture.log() == ["queued"])
    }
  }

  @Test("NO-11 OP-57 what is stored is sealed and wiped at the end; the log holds no name, address or link")
  func wiped() async throws {
    try await NotificationsFixture.with { fixture in
      try await fixture.send(fixture.request())
      let stored = try await fixture.texts("SELECT notifications::text FROM notifications")[0]
      #expect(try await fixture.texts("SELECT encode(sealed, 'escape') FROM notifications")[0].count > 20)
      try await fixture.work()
      #expect(try await fixture.texts("SELECT (sealed IS NULL)::text FROM notifications") == ["true"])
      let log = try await fixture.texts("SELECT notification_log::text FROM notification_log").joined()
      let left = try await fixture.texts("SELECT notifications::text FROM notifications").joined()
      for part in ["Anna", "anna@example.com", "Karl", "secret-of-the-link"] {
        #expect(!stored.contains(part) && !log.contains(part) && !left.contains(part))
      }
    }
  }

  @Test("OP-57 two channels that end at the same time wipe the content all the same")
  func wipedTogether() async throws {
    try await NotificationsFixture.with { fixture in
      try await fixture.send(fixture.request())
      let database = fixture.database
      let template = try #require(Template(.messageNotice(.init(senderName: "Karl", link: NotificationsFixture.link))))
      func claim(_ channel: SendChannel) async throws -> DueSend {
        try await database.transaction { try await SendStore($0).claimDue(channel, limit: 1) }[0]
      }
      let (mail, notice) = (try await claim(.email), try await claim(.inApp))
      let other = Signal()
      let second = try await database.transaction { transaction in
        #expect(try await SendStore(transaction).end(mail, "sent", template))
        let second = SendTests.end(notice, template, in: database, rings: other)
        try await eventually("the other channel waits or has ended") {
          let waiting = try await fixture.texts(
            "SELECT '' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
          return !waiting.isEmpty || other.count > 0
        }
        return second
      }
      #expect(try await second.value)
      #expect(try await fixture.texts("SELECT (sealed IS NULL)::text FROM notifications") == ["true"])
    }
  }

  private static func end(
    _ send: DueSend, _ template: Template, in database: Database, rings done: Signal
  ) -> Task<Bool, any Error> {
    Task {
      let ended = try await database.transaction { try await SendStore($0).end(send, "sent", template) }
      done.ring()
      return ended
    }
  }

  @Test("NO-1 the worker sends by itself what was taken over")
  func worker() async throws {
    try await NotificationsFixture.with { fixture in
      let sender = fixture.sender
      let worker = Task(executorPreference: fixture.runtime.group.loops[0]) { await sender.run() }
      for number in 0..<10 {
        try await fixture.send(fixture.request(to: "p\(number)@example.com"))
      }
      try await eventually("all sent") {
        try await fixture.texts("SELECT channel FROM sends WHERE status = 'pending'").isEmpty
      }
      worker.cancel()
      await worker.value
      #expect(Set(try fixture.mail.mails().map(\.recipient)).count == 10)
      #expect(try fixture.mail.mails().count == 10)
    }
  }
}
