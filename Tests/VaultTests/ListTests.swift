import API
import Primitives
import Protobuf
import TestKit
import Testing
import vault

@Suite struct ListTests {
  @Test("VA-24 the summary counts all, drafts and ready ones of the caller alone")
  func summary() async throws {
    try await VaultFixture.with { fixture in
      _ = try await fixture.saveDraft(fixture.letter())
      _ = try await fixture.saveDraft(fixture.letter())
      _ = try await fixture.saveToVault(fixture.letter())
      _ = try await fixture.saveDraft(fixture.letter(), by: Identifier())
      let method = VaultFixture.Calls.getSummary
      #expect(
        try await fixture.vault.getSummary(.init(), fixture.owner(method)) == .init(total: 3, drafts: 2, ready: 1))
      #expect(
        try await fixture.vault.getSummary(.init(), fixture.owner(method, Identifier())) == .init())
    }
  }

  @Test("VA-25 the list has every message once, newest first, without its body, in pages of any size")
  func pages() async throws {
    try await VaultFixture.with { fixture in
      var saved: [VaultV1.Message] = []
      for number in 0..<5 {
        var message = try await fixture.saveToVault(fixture.letter { $0.title = "Letter \(number)" })
        message.content?.body = ""
        saved.insert(message, at: 0)
      }
      _ = try await fixture.saveDraft(fixture.letter(), by: Identifier())
      for size in [Int32(1), 2, 4, 5, 0, 1000] {
        var listed: [VaultV1.Message] = []
        var token = ""
        repeat {
          let page = try await fixture.list(.init(pageSize: size, pageToken: token))
          #expect(size == 0 || page.messages.count <= Int(size))
          listed += page.messages
          token = page.nextPageToken
        } while !token.isEmpty
        #expect(listed == saved, "size \(size)")
      }
    }
  }

  @Test("VA-25 a page of messages to very many people ends early and loses none")
  func largePages() async throws {
    try await VaultFixture.with { fixture in
      let many = (0..<1000).map { _ in "\(Identifier())" }
      for _ in 0..<60 { _ = try await fixture.saveDraft(.init(type: .note, recipientIDs: many)) }
      let first = try await fixture.list(.init(pageSize: 200))
      #expect(first.messages.count < 60 && first.serialized().count < 3 << 20)
      let rest = try await fixture.list(.init(pageSize: 200, pageToken: first.nextPageToken))
      #expect(Set((first.messages + rest.messages).map(\.messageID)).count == 60)
      #expect(rest.nextPageToken == "")
    }
  }

  @Test("VA-25 filters by status, type and recipient")
  func filters() async throws {
    try await VaultFixture.with { fixture in
      let other = Identifier()
      fixture.standIns.set { $0.recipients.insert(other) }
      let letter = try await fixture.saveToVault(fixture.letter())
      let note = try await fixture.saveToVault(fixture.letter { ($0.type, $0.recipientIDs) = (.note, ["\(other)"]) })
      let draft = try await fixture.saveDraft(fixture.letter { $0.type = .note })
      func ids(_ request: VaultV1.ListMessagesRequest) async throws -> [String] {
        try await fixture.list(request).messages.map(\.messageID)
      }
      #expect(try await ids(.init(status: .ready)) == [note, letter].map(\.messageID))
      #expect(try await ids(.init(status: .draft)) == [draft.messageID])
      #expect(try await ids(.init(type: .letter)) == [letter.messageID])
      #expect(try await ids(.init(recipientID: "\(other)")) == [note.messageID])
      #expect(try await ids(.init(status: .ready, type: .note, recipientID: "\(fixture.recipient)")) == [])
      let error = try await refusal {
        try await fixture.list(.init(status: .init(rawValue: 7), type: .init(rawValue: 8), recipientID: "x"))
      }
      #expect(error.violations.map(\.field) == ["status", "type", "recipient_id"])
    }
  }

  @Test(
    "OP-26 search finds part of a title in any case, and takes no character for a pattern",
    arguments: [
      ("anna", ["For ANNA"]), ("ÄRGER", ["100% ärger_los"]), ("0%", ["100% ärger_los"]), ("r_l", ["100% ärger_los"]),
      ("%", ["100% ärger_los"]), ("_", ["100% ärger_los"]), (#"\"#, []), ("'", ["O'Hara"]), ("body", []),
      ("  anna ", ["For ANNA"]), ("", ["O'Hara", "100% ärger_los", "For ANNA"]),
    ] as [(String, [String])])
  func search(_ text: String, _ expected: [String]) async throws {
    try await VaultFixture.with { fixture in
      for title in ["For ANNA", "100% ärger_los", "O'Hara"] {
        _ = try await fixture.saveDraft(fixture.letter { ($0.title, $0.body) = (title, "body") })
      }
      #expect(try await fixture.list(.init(search: text)).messages.map { $0.content!.title } == expected)
    }
  }

  @Test("VA-25 a page token serves only the caller, the call and the filter it was made for")
  func pageTokens() async throws {
    try await VaultFixture.with { fixture in
      for _ in 0..<3 { _ = try await fixture.saveToVault(fixture.letter()) }
      let token = try await fixture.list(.init(pageSize: 1)).nextPageToken
      #expect(try await fixture.list(.init(pageSize: 2, pageToken: token)).messages.count == 2)
      let statement = try fixture.statement(for: fixture.author)
      let readyToken = try await fixture.listReady(statement, pageSize: 1).nextPageToken
      #expect(!token.isEmpty && !readyToken.isEmpty)
      let attempts: [(VaultV1.ListMessagesRequest, Identifier)] = [
        (.init(pageToken: token), Identifier()), (.init(pageToken: token, status: .ready), fixture.author),
        (.init(pageToken: token, search: "a"), fixture.author), (.init(pageToken: token + "A"), fixture.author),
        (.init(pageToken: "x"), fixture.author), (.init(pageToken: readyToken), fixture.author),
      ]
      for (request, caller) in attempts {
        let error = try await refusal { try await fixture.list(request, by: caller) }
        #expect((error.code, error.violations.map(\.field)) == (.invalidArgument, ["page_token"]))
      }
      let foreign = try fixture.statement(for: Identifier())
      for (statement, token) in [(foreign, readyToken), (statement, token)] {
        let error = try await refusal { try await fixture.listReady(statement, pageToken: token) }
        #expect(error.violations.map(\.field) == ["page_token"])
      }
      let negative = try await refusal { try await fixture.list(.init(pageSize: -1)) }
      #expect(negative.violations.map(\.field) == ["page_size"])
    }
  }
}
