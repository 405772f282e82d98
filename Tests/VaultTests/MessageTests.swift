import API
import Postgres
import Primitives
import ServiceKit
import TestKit
import Testing

@Suite struct MessageTests {
  @Test("VA-1 VA-27 a saved message has an ID of the system's making and comes back with all that was saved")
  func wholeMessage() async throws {
    try await VaultFixture.with { fixture in
      let saved = try await fixture.saveToVault(fixture.letter())
      #expect(Identifier(saved.messageID) != nil)
      #expect(saved.content == fixture.letter())
      #expect(saved.status == .ready)
      #expect(saved.revision == 1)
      #expect(saved.createTime != nil && saved.createTime == saved.updateTime)
      #expect(try await fixture.get(saved) == saved)
    }
  }

  @Test("VA-2 a letter's formatting is preserved to the byte")
  func formatting() async throws {
    try await VaultFixture.with { fixture in
      let body = "# Dear\r\n\r\n  ++under++ *it* [x](https://a.example)\n\n1. a\n\n\tcode \u{65}\u{301}  \n"
      let saved = try await fixture.saveToVault(fixture.letter { $0.body = body })
      #expect(Array(try await fixture.get(saved).content!.body.utf8) == Array(body.utf8))
    }
  }

  @Test("VA-3 a note has a title and at most 5,000 characters of text")
  func note() async throws {
    try await VaultFixture.with { fixture in
      let longest = String(repeating: "é", count: 5000)
      let saved = try await fixture.saveToVault(fixture.letter { ($0.type, $0.body) = (.note, longest) })
      #expect(try await fixture.get(saved).content?.body == longest)
      let error = try await refusal {
        try await fixture.saveDraft(fixture.letter { ($0.type, $0.body) = (.note, longest + "x") })
      }
      #expect(error.violations.map(\.field) == ["content.body"])
      #expect(try await fixture.count("messages") == 1)
    }
  }

  @Test("VA-2 a letter has at most 1 MiB and a title of at most 200 characters")
  func letterLimits() async throws {
    try await VaultFixture.with { fixture in
      let largest = String(repeating: "a", count: 1 << 20)
      let title = String(repeating: "t", count: 200)
      let saved = try await fixture.saveToVault(fixture.letter { ($0.title, $0.body) = (title, largest) })
      #expect(try await fixture.get(saved).content?.body.utf8.count == 1 << 20)
      let error = try await refusal {
        try await fixture.saveToVault(fixture.letter { ($0.title, $0.body) = (title + "t", largest + "a") })
      }
      #expect(error.code == .invalidArgument)
      #expect(error.violations.map(\.field) == ["content.title", "content.body"])
      #expect(try await fixture.count("messages") == 1)
    }
  }

  @Test("VA-8 a message may go to several recipients and groups, each once")
  func audience() async throws {
    try await VaultFixture.with { fixture in
      let others = [fixture.recipient, Identifier(), Identifier(), fixture.recipient]
      let groups = [Identifier(), fixture.group]
      fixture.standIns.set { state in
        state.recipients = Set(others)
        state.groups = Set(groups)
      }
      let saved = try await fixture.saveToVault(
        fixture.letter { content in
          content.recipientIDs = others.map { "\($0)" }
          content.groupIDs = groups.map { "\($0)" }
        })
      #expect(saved.content?.recipientIDs == others.prefix(3).map { "\($0)" })
      #expect(saved.content?.groupIDs == groups.map { "\($0)" })
    }
  }

  @Test(
    "VA-8 at most 1,000 recipients and 200 groups",
    arguments: [(1000, 200, true), (1001, 200, false), (1000, 201, false)])
  func audienceLimits(_ recipients: Int, _ groups: Int, _ isAllowed: Bool) async throws {
    try await VaultFixture.with { fixture in
      let content = fixture.letter { content in
        content.recipientIDs = (0..<recipients).map { _ in "\(Identifier())" }
        content.groupIDs = (0..<groups).map { _ in "\(Identifier())" }
      }
      if isAllowed {
        #expect(try await fixture.saveDraft(content).content == content)
      } else {
        let error = try await refusal { try await fixture.saveDraft(content) }
        #expect(error.violations.map(\.field) == [recipients > 1000 ? "content.recipient_ids" : "content.group_ids"])
        #expect(try await fixture.count("messages") == 0)
      }
    }
  }

  @Test("VA-12 a draft may lack anything but its type, and is found again")
  func emptyDraft() async throws {
    try await VaultFixture.with { fixture in
      let saved = try await fixture.saveDraft(.init(type: .note))
      #expect(saved.status == .draft)
      #expect(try await fixture.get(saved).content == .init(type: .note))
      #expect(try await fixture.list().messages == [saved])
      let error = try await refusal { try await fixture.saveDraft(.init()) }
      #expect(error.violations.map(\.field) == ["content.type"])
      #expect(try await refusal { try await fixture.saveDraft(nil) }.violations.map(\.field) == ["content"])
    }
  }

  @Test("OP-24 a draft is checked for form: ids, control characters, all violations at once")
  func draftForm() async throws {
    try await VaultFixture.with { fixture in
      let error = try await refusal {
        try await fixture.saveDraft(
          .init(
            type: .letter, title: "a\nb", body: "bell \u{7}", recipientIDs: ["\(Identifier())", "x"], groupIDs: ["y"],
            deliveryCondition: .init(condition: .relativeDelay(.init(count: 0, unit: .days)))))
      }
      #expect(
        error.violations.map(\.field) == [
          "content.title", "content.body", "content.recipient_ids[1]", "content.group_ids[0]",
          "content.delivery_condition.relative_delay.count",
        ])
      #expect(try await fixture.count("messages") == 0)
    }
  }

  @Test("VA-19 VA-21 a ready message saved as draft is a draft, and can become ready again")
  func statuses() async throws {
    try await VaultFixture.with { fixture in
      let ready = try await fixture.saveToVault(fixture.letter())
      let draft = try await fixture.saveDraft(fixture.letter { $0.body = "" }, over: ready)
      #expect((draft.status, draft.revision, draft.messageID) == (.draft, 2, ready.messageID))
      #expect(draft.createTime == ready.createTime)
      #expect(try await fixture.get(draft).content?.body == "")
      let again = try await fixture.saveToVault(fixture.letter { $0.title = "Again" }, over: draft)
      #expect((again.status, again.revision, again.content?.title) == (.ready, 3, "Again"))
      #expect(
        try await fixture.events() == Array(repeating: "afterthoughts.vault.v1.MessageSaved", count: 3))
    }
  }

  @Test("VA-13 VA-21 a save over a revision that is not the present one is refused and changes nothing")
  func revisions() async throws {
    try await VaultFixture.with { fixture in
      let first = try await fixture.saveDraft(fixture.letter())
      let second = try await fixture.saveDraft(fixture.letter { $0.title = "Second" }, over: first)
      for stale in [first, .init(messageID: first.messageID, revision: 3)] {
        let draft = try await refusal { try await fixture.saveDraft(fixture.letter(), over: stale) }
        #expect((draft.code, draft.reason) == (.aborted, "REVISION_MISMATCH"))
        let error = try await refusal { try await fixture.saveToVault(fixture.letter(), over: stale) }
        #expect((error.code, error.reason) == (.aborted, "REVISION_MISMATCH"))
        #expect(try await refusal { try await fixture.delete(stale) }.reason == "REVISION_MISMATCH")
      }
      #expect(try await fixture.get(first) == second)
    }
  }

  @Test("OP-26 the type of a message is fixed after creation")
  func fixedType() async throws {
    try await VaultFixture.with { fixture in
      let letter = try await fixture.saveDraft(fixture.letter())
      let error = try await refusal { try await fixture.saveDraft(fixture.letter { $0.type = .note }, over: letter) }
      #expect(error.violations.map(\.field) == ["content.type"])
      #expect(try await fixture.get(letter) == letter)
    }
  }

  @Test("VA-23 a deleted message is gone for good")
  func deletion() async throws {
    try await VaultFixture.with { fixture in
      let message = try await fixture.saveToVault(fixture.letter())
      try await fixture.delete(message)
      #expect(try await refusal { try await fixture.get(message) }.code == .notFound)
      #expect(try await refusal { try await fixture.delete(message) }.code == .notFound)
      #expect(try await fixture.count("messages") == 0)
      #expect(try await fixture.events().last == "afterthoughts.vault.v1.MessageDeleted")
    }
  }

  @Test("VA-1 an account has at most 10,000 messages")
  func countLimit() async throws {
    try await VaultFixture.with { fixture in
      let last = try await fixture.saveDraft(fixture.letter())
      _ = try await fixture.runtime.database.execute(
        """
        INSERT INTO messages (message_id, owner_id, type, status, title, body, recipient_ids, group_ids, revision)
        SELECT gen_random_uuid(), \(fixture.author), 1, 1, '', ''::bytea, '{}', '{}', 1 FROM generate_series(1, 9998)
        """)
      _ = try await fixture.saveDraft(fixture.letter())
      let error = try await refusal { try await fixture.saveDraft(fixture.letter()) }
      #expect((error.code, error.reason) == (.resourceExhausted, "VAULT_FULL"))
      #expect(try await fixture.count("messages") == 10_000)
      _ = try await fixture.saveDraft(fixture.letter { $0.title = "Changed" }, over: last)
    }
  }
}
