import API
import Postgres
import Primitives
import TestKit
import Testing
import recipients

struct PromptTests {
  @Test("RE-4 with the prompt asked for, the mail is queued with the recipient; without, nothing is sent")
  func adding() async throws {
    try await RecipientsFixture.with { fixture in
      let silent = try await fixture.add(RecipientsFixture.request("Carl"))
      #expect(silent.promptTime == nil)
      #expect(try await fixture.count("send_queue") == 0)
      let ben = try await fixture.addPrompted()
      #expect(ben.promptTime != nil && ben.acceptance == .pending)
      let mails = try await fixture.mails()
      #expect(mails.map(\.addressee) == [.init(name: "Ben", email: "ben@afterthoughts.example")])
      guard case .acceptancePrompt(let prompt) = mails[0].content else { throw TestFault.other }
      #expect(prompt.senderName == "Anna Berg")
      #expect(prompt.link.hasPrefix("http://afterthoughts.example/prompt/"))
      #expect(try await fixture.events() == ["RecipientAdded", "RecipientAdded", "PromptRequested"])
    }
  }

  @Test("RE-4 a call that fails queues nothing")
  func failing() async throws {
    try await RecipientsFixture.with { fixture in
      _ = try await fixture.add()
      var request = RecipientsFixture.request()
      request.promptChannels = [.email]
      #expect(try await refusal { try await fixture.add(request) }.reason == "EMAIL_TAKEN")
      for table in ["send_queue", "prompts", "prompted_addresses"] { #expect(try await fixture.count(table) == 0) }
      #expect(try await fixture.events() == ["RecipientAdded"])
    }
  }

  @Test("RE-5 a prompt by text needs a phone number")
  func text() async throws {
    try await RecipientsFixture.with { fixture in
      var request = RecipientsFixture.request()
      request.promptChannels = [.email, .text]
      let error = try await refusal { try await fixture.add(request) }
      #expect((error.code, error.reason) == (.failedPrecondition, "NO_PHONE"))
      request.phone = "+12345678"
      #expect(try await fixture.add(request).promptTime != nil)
      let carl = try await fixture.add(RecipientsFixture.request("Carl"))
      #expect(try await refusal { try await fixture.sendPrompt(carl, [.text]) }.reason == "NO_PHONE")
      for channels in [[], [RecipientsV1.PromptChannel.unspecified]] {
        #expect(try await refusal { try await fixture.sendPrompt(carl, channels) }.code == .invalidArgument)
      }
      #expect(try await fixture.count("send_queue") == 1)
    }
  }

  @Test("OP-13 an author whose address is not proved adds recipients but sends no prompt")
  func unverified() async throws {
    try await RecipientsFixture.with { fixture in
      fixture.identity.change(fixture.author) { $0.emailVerified = false }
      let ben = try await fixture.add()
      #expect(try await refusal { try await fixture.addPrompted("Carl") }.reason == "EMAIL_NOT_VERIFIED")
      let error = try await refusal { try await fixture.sendPrompt(ben) }
      #expect((error.code, error.reason) == (.failedPrecondition, "EMAIL_NOT_VERIFIED"))
      #expect(try await fixture.count("recipients") == 1)
      #expect(try await fixture.count("send_queue") == 0)
    }
  }

  @Test("RE-17 the link shows who asks whom, and changes nothing")
  func page() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      let token = try await fixture.tokens()[0]
      for _ in 0..<2 {
        #expect(
          try await fixture.getPrompt(token)
            == .init(senderName: "Anna Berg", recipientName: "Ben", acceptance: .pending))
      }
      #expect(try await fixture.get(ben) == ben)
      let strange = String(token.reversed())
      for wrong in ["", "x", strange, token + "A", token.uppercased()] where wrong != token {
        #expect(try await refusal { try await fixture.getPrompt(wrong) }.code == .notFound)
        #expect(try await refusal { try await fixture.answer(wrong, .accepted) }.code == .notFound)
      }
    }
  }

  @Test("RE-18 the answer is seen by the author and can be changed through the link")
  func answers() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      let token = try await fixture.tokens()[0]
      #expect(try await fixture.answer(token, .accepted) == .init(senderName: "Anna Berg", acceptance: .accepted))
      #expect(try await fixture.get(ben).acceptance == .accepted)
      _ = try await fixture.answer(token, .accepted)
      _ = try await fixture.answer(token, .declined)
      #expect(try await fixture.getPrompt(token).acceptance == .declined)
      #expect(try await fixture.get(ben).revision == ben.revision + 2)
      #expect(try await fixture.events().suffix(2) == ["AcceptanceChanged", "AcceptanceChanged"])
      #expect(try await fixture.events().count == 4)
      for answer in [RecipientsV1.Acceptance.unspecified, .pending, .init(rawValue: 9)] {
        #expect(try await refusal { try await fixture.answer(token, answer) }.violations.map(\.field) == ["answer"])
      }
      #expect(try await fixture.get(ben).acceptance == .declined)
    }
  }

  @Test("OP-30 the link ends after 90 days")
  func expiry() async throws {
    try await RecipientsFixture.with { fixture in
      _ = try await fixture.addPrompted()
      let token = try await fixture.tokens()[0]
      try await fixture.agePrompts("89 days 23 hours")
      #expect(try await fixture.getPrompt(token).recipientName == "Ben")
      try await fixture.agePrompts("1 hour")
      #expect(try await refusal { try await fixture.getPrompt(token) }.code == .notFound)
      #expect(try await refusal { try await fixture.answer(token, .accepted) }.code == .notFound)
    }
  }

  @Test("OP-30 once in 7 days; the new link voids the old one and keeps the answer")
  func again() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      _ = try await fixture.answer(try await fixture.tokens()[0], .accepted)
      let soon = try await refusal { try await fixture.sendPrompt(ben) }
      #expect((soon.code, soon.reason) == (.resourceExhausted, "PROMPT_TOO_SOON"))
      let wait = try #require(soon.retryAfter)
      #expect(wait > .seconds(7 * 86_400 - 600) && wait <= .seconds(7 * 86_400))
      try await fixture.agePrompts("6 days 23 hours")
      #expect(try await refusal { try await fixture.sendPrompt(ben) }.reason == "PROMPT_TOO_SOON")
      try await fixture.agePrompts("1 hour")
      #expect(try await fixture.sendPrompt(ben).acceptance == .accepted)
      let tokens = try await fixture.tokens()
      #expect(tokens.count == 2)
      let open = try await tokens.asyncFilter { token in (try? await fixture.getPrompt(token)) != nil }
      #expect(open.count == 1)
      #expect(try await fixture.count("prompts WHERE void_time IS NULL") == 1)
    }
  }

  @Test("OP-30 removing and adding, or changing the address to and fro, asks nobody more often")
  func roundabout() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      let moved = try await fixture.update(ben) { $0.email = "other@afterthoughts.example" }
      let back = try await fixture.sendPrompt(
        try await fixture.update(moved) { $0.email = "Third@afterthoughts.example" })
      let returned = try await fixture.update(back) { $0.email = "BEN@afterthoughts.example" }
      #expect(try await refusal { try await fixture.sendPrompt(returned) }.reason == "PROMPT_TOO_SOON")
      try await fixture.remove(returned)
      #expect(try await refusal { try await fixture.addPrompted() }.reason == "PROMPT_TOO_SOON")
      #expect(try await fixture.count("send_queue") == 2)
      #expect(try await fixture.count("recipients") == 0)
      // Another author's prompt is another matter.
      var request = RecipientsFixture.request()
      request.promptChannels = [.email]
      _ = try await fixture.add(request, by: fixture.stranger)
    }
  }

  @Test("OP-33 a new address voids the link and sets the answer back; another spelling does not")
  func newAddress() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      let token = try await fixture.tokens()[0]
      _ = try await fixture.answer(token, .accepted)
      let spelled = try await fixture.update(try await fixture.get(ben)) { $0.email = "BEN@afterthoughts.example" }
      #expect(spelled.acceptance == .accepted && spelled.promptTime == ben.promptTime)
      #expect(try await fixture.getPrompt(token).acceptance == .accepted)
      let moved = try await fixture.update(spelled) { $0.email = "new@afterthoughts.example" }
      #expect(moved.acceptance == .pending && moved.promptTime == nil)
      #expect(try await refusal { try await fixture.getPrompt(token) }.code == .notFound)
      #expect(try await refusal { try await fixture.answer(token, .declined) }.code == .notFound)
      #expect(try await fixture.get(ben).acceptance == .pending)
      #expect(try await fixture.events().suffix(2) == ["RecipientChanged", "AcceptanceChanged"])
    }
  }

  @Test("OP-33 an answer under way while the address changes is not taken for the new one")
  func answerMeanwhile() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      let token = try await fixture.tokens()[0]
      let error = try await fixture.interleaving(fixture.author, "UPDATE prompts SET void_time = now()") {
        try await refusal { try await fixture.answer(token, .accepted) }
      }
      #expect(error.code == .notFound)
      #expect(try await fixture.get(ben).acceptance == .pending)
    }
  }

  @Test("OP-34 an addition under way while the account is frozen comes too late")
  func additionMeanwhile() async throws {
    try await RecipientsFixture.with { fixture in
      let freeze: Query = "INSERT INTO frozen_accounts (account_id) VALUES (\(fixture.author))"
      let error = try await fixture.interleaving(fixture.author, freeze) {
        try await refusal { try await fixture.add() }
      }
      #expect(error.reason == "ACCOUNT_CLOSED")
      #expect(try await fixture.freeze() == .init())
    }
  }

  @Test("OP-11 no link, token or mail stands in the database in clear")
  func dump() async throws {
    try await RecipientsFixture.with { fixture in
      _ = try await fixture.addPrompted()
      let token = try await fixture.tokens()[0]
      _ = try await fixture.answer(token, .accepted)
      let dump = try await fixture.dump()
      #expect(dump.contains("ben@afterthoughts.example"), "the dump is of the right schema")
      let bytes = try #require(Base64.decode(token))
      for secret in [token, Hex.encode(token.utf8), Hex.encode(bytes), Hex.encode("Anna Berg".utf8)] {
        #expect(!dump.contains(secret))
      }
    }
  }
}

enum TestFault: Error { case other }

extension Array where Element: Sendable {
  func asyncFilter(_ isKept: (Element) async throws -> Bool) async throws -> [Element] {
    var kept: [Element] = []
    for element in self where try await isKept(element) { kept.append(element) }
    return kept
  }
}

extension RecipientsFixture {
  /// Every row of every table of the schema as text; bytes as hexadecimal.
  func dump() async throws -> String {
    let tables = try await database.query(
      "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'recipients'")
    var text = ""
    for table in try tables.map({ try $0.decode(String.self, at: 0) }) {
      for row in try await database.query("SELECT t::text FROM \(unescaped: table) AS t") {
        text += try row.decode(String.self, at: 0) + "\n"
      }
    }
    return text
  }
}
