import EventLoop
import Foundation
import Mail
import Primitives
import Testing

struct MailerTests {
  private let pool = BlockingPool(name: "mail", threads: 1, queueMax: 64)

  private func message(
    to: String = "ann@example.com", name: String = "Ann Lee", subject: String = "A letter for you",
    text: String = "Hello Ann.\n", html: String? = "<p>Hello Ann.</p>\n", id: String = "<m1@mail.example>",
    headers: [MailMessage.Header] = []
  ) -> MailMessage {
    MailMessage(
      from: MailAddress("letters@example.org", displayName: "Afterthoughts"), to: MailAddress(to, displayName: name),
      subject: subject, textBody: text, htmlBody: html, messageID: id, date: Instant(seconds: 1_796_067_100),
      headers: headers)
  }

  private func mailer(_ server: MailServer, scheme: String = "smtp", caPath: String? = nil) throws -> Mailer {
    try Mailer(url: "\(scheme)://127.0.0.1:\(server.port)", helloName: "mail.example.org", caPath: caPath, pool: pool)
  }

  @Test("Mail arrives with the right envelope, headers and both bodies")
  func arrives() async throws {
    let server = try MailServer()
    try await mailer(server).send(message(headers: [.init("Auto-Submitted", "auto-generated")]))
    let mail = try #require(try server.mails().first)
    #expect(mail.sender == "letters@example.org" && mail.recipients == ["ann@example.com"])
    #expect(mail.hello == "mail.example.org")
    #expect(mail.headers["from"] == "Afterthoughts <letters@example.org>")
    #expect(mail.headers["to"] == "Ann Lee <ann@example.com>")
    #expect(mail.headers["subject"] == "A letter for you")
    #expect(mail.headers["date"] == "Mon, 30 Nov 2026 19:31:40 +0000")
    #expect(mail.headers["message-id"] == "<m1@mail.example>")
    #expect(mail.headers["auto-submitted"] == "auto-generated")
    #expect(mail.headers["mime-version"]?.hasPrefix("1.0") == true)
    #expect(mail.headers["bcc"] == nil)
    #expect(mail.type == "multipart/alternative")
    #expect(mail.text == "Hello Ann.\n" && mail.html == "<p>Hello Ann.</p>\n")
  }

  @Test("Mail without an HTML body has the text alone")
  func textOnly() async throws {
    let server = try MailServer()
    try await mailer(server).send(message(html: nil))
    let mail = try #require(try server.mails().first)
    #expect(mail.text == "Hello Ann.\n" && mail.html == "")
  }

  @Test(
    "Mail decodes to the subject and the name that were given",
    arguments: [
      ("Für dich: ein Brief ✉️", "Zoë Müller"), ("手紙です", "山田 太郎"),
      ("Re: \"quotes\" \\ and, commas", "Lee, \"Ann\" <x@y.zz>"),
      ("=?UTF-8?Q?not_encoded?=", "=?x?B?y?="),
      (String(repeating: "длинно ", count: 60), String(repeating: "имя ", count: 30) + "."),
      (String(repeating: "long ", count: 100) + ".", "O'Neil (Ann)"), ("👩‍👩‍👧", ""), ("a", "Ann; Lee: @work"),
    ])
  func unicode(subject: String, name: String) async throws {
    let server = try MailServer()
    try await mailer(server).send(message(name: name, subject: subject, text: "Grüße 👋\n"))
    let mail = try #require(try server.mails().first)
    #expect(
      mail.headers["subject"] == subject.trimmingCharacters(in: .whitespaces) || mail.headers["subject"] == subject)
    #expect(mail.toName == name)
    #expect(mail.recipients == ["ann@example.com"])
    #expect(mail.text == "Grüße 👋\n")
    #expect(mail.isAscii && mail.lineMax <= 998)
  }

  @Test("Mail uses one connection for twenty mails")
  func reuse() async throws {
    let server = try MailServer()
    let mailer = try mailer(server)
    for number in 1...20 { try await mailer.send(message(id: "<n\(number)@mail.example>")) }
    let mails = try server.mails()
    #expect(mails.map { $0.headers["message-id"]! } == (1...20).map { "<n\($0)@mail.example>" })
    #expect(mails.last?.connections == 1)
  }

  @Test("Mail that the server will never take fails for good, and the answer shows no address")
  func permanent() async throws {
    let server = try MailServer()
    let mailer = try mailer(server)
    for refused in [message(to: "r550@example.com"), message(to: "r553@example.com"), message(subject: "data554")] {
      let error = await #expect(throws: MailError.self) { try await mailer.send(refused) }
      guard case .permanent(let code, let text)? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect([550, 553, 554].contains(code) && text.contains("\(code)"))
      #expect(!text.contains("@"))
    }
    try await mailer.send(message())
    #expect(try server.mails().count == 1)
  }

  @Test("Mail that may be taken later fails for now: 4xx, nobody listening, no such name")
  func temporary() async throws {
    let server = try MailServer()
    let busy = await #expect(throws: MailError.self) { try await mailer(server).send(message(to: "r451@example.com")) }
    guard case .temporary(451, _)? = busy else {
      Issue.record("\(String(describing: busy))")
      return
    }
    for url in ["smtp://127.0.0.1:1", "smtp://no-such-host.invalid:25"] {
      let refused = await #expect(throws: MailError.self) { try await Mailer(url: url, pool: pool).send(message()) }
      guard case .temporary(nil, _)? = refused else {
        Issue.record("\(String(describing: refused))")
        return
      }
    }
  }

  @Test(
    "Mail with a control character in any header field is refused before anything is sent",
    arguments: ["\r\nBcc: eve@evil.example", "\n.", "\r", "\u{0}", "\u{7F}", "\u{85}x", "\u{2028}x", "\u{1B}"])
  func injection(text: String) async throws {
    let server = try MailServer()
    let mailer = try mailer(server)
    var fromAddress = message()
    fromAddress.from = MailAddress("a@b.co" + text)
    var fromName = message()
    fromName.from = MailAddress("a@b.co", displayName: "x" + text)
    let attempts = [
      message(to: "ann@example.com" + text), message(name: "Ann" + text), message(subject: "Hi" + text),
      message(id: "<a@b" + text + ">"), message(headers: [.init("X-A", "b" + text)]),
      message(headers: [.init("X-A" + text, "b")]), fromAddress, fromName,
    ]
    for attempt in attempts {
      let error = await #expect(throws: MailError.self) { try await mailer.send(attempt) }
      guard case .invalid? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
    #expect(try server.mails().isEmpty)
  }

  @Test(
    "Mail refuses an address or a header name of another shape",
    arguments: ["", "ann", "@b.co", "a@", "a@b@c.de", "a b@c.de", "<a@b.co>", "a@b.co,c@d.ee", "ä@b.co", "a@b.co> x"])
  func badAddress(address: String) async throws {
    let mailer = try Mailer(url: "smtp://127.0.0.1:1", pool: pool)
    await #expect(throws: MailError.invalid(field: "to")) { try await mailer.send(message(to: address)) }
    await #expect(throws: MailError.invalid(field: "message id")) { try await mailer.send(message(id: address + ">")) }
    for name in ["Bcc", "from", "Content-Type", "", "X A", "X:"] {
      await #expect(throws: MailError.invalid(field: "header name")) {
        try await mailer.send(message(headers: [.init(name, "v")]))
      }
    }
  }

  @Test("Mail keeps lines that begin with a dot, very long lines and every kind of line end")
  func bodies() async throws {
    let server = try MailServer()
    let long = String(repeating: "long line ", count: 2000)
    let text = "first\n.\n..\n.hidden\nMAIL FROM:<x@y.zz>\n\(long)\ntrailing space \n=3D equals\n"
    try await mailer(server).send(message(text: text, html: text.replacingOccurrences(of: "\n", with: "\r\n")))
    try await mailer(server).send(message(text: "", html: "a\rb"))
    let mails = try server.mails()
    #expect(mails.count == 2)
    #expect(mails[0].text == text && mails[0].html == text)
    #expect(mails[0].lineMax <= 100)
    #expect(mails[1].html == "a\nb" || mails[1].html == "a\nb\n")
  }

  @Test("Mail signs in when it has credentials; wrong ones fail for now, for they are no verdict on the mail")
  func credentials() async throws {
    let server = try MailServer("--auth")
    for (password, works) in [("secret", true), ("wrong", false)] {
      let mailer = try Mailer(
        url: "smtp://127.0.0.1:\(server.port)", credentials: .init(user: "mailer", password: Secret(password)),
        pool: pool)
      if works {
        try await mailer.send(message())
      } else {
        let error = await #expect(throws: MailError.self) { try await mailer.send(message()) }
        guard case .temporary? = error else {
          Issue.record("\(String(describing: error))")
          return
        }
      }
    }
    let error = await #expect(throws: MailError.self) { try await mailer(server).send(message()) }
    guard case .temporary? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try server.mails().count == 1)
  }

  @Test("Mail goes by STARTTLS to a server whose certificate it can check, and to no other")
  func startTLS() async throws {
    let certificate = try MailServer.certificate()
    defer { try? FileManager.default.removeItem(atPath: certificate) }
    let server = try MailServer("--tls", certificate)
    try await mailer(server, scheme: "smtp+starttls", caPath: certificate).send(message())
    #expect(try server.mails().map(\.encrypted) == [true])

    let plain = try MailServer()
    for attempt in [
      try mailer(server, scheme: "smtp+starttls"), try mailer(plain, scheme: "smtp+starttls", caPath: certificate),
      try mailer(plain, scheme: "smtps", caPath: certificate),
    ] {
      let error = await #expect(throws: MailError.self) { try await attempt.send(message()) }
      guard case .temporary? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
    #expect(try server.mails().count == 1 && plain.mails().isEmpty)
  }

  @Test(
    "Mail refuses a URL that is not SMTP's",
    arguments: ["", "127.0.0.1:25", "http://a:25", "smtp://", "smtp://a/b", "smtp://u:p@a:25", "file:///etc/passwd"])
  func badURL(url: String) {
    #expect(throws: MailError.invalid(field: "url")) { try Mailer(url: url, pool: pool) }
  }
}

struct MailDateTests {
  @Test(
    "Mail writes dates as RFC 5322 says",
    arguments: [
      (0, "Thu, 1 Jan 1970 00:00:00 +0000"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
      (1_796_067_100, "Mon, 30 Nov 2026 19:31:40 +0000"), (-1, "Wed, 31 Dec 1969 23:59:59 +0000"),
    ] as [(Int64, String)])
  func dates(seconds: Int64, text: String) {
    #expect(MailHeaders.date(Instant(seconds: seconds)) == text)
  }
}
