import API
import Postgres
import Primitives
import Protobuf
import RPC
import ServiceKit
import TestKit
import Testing
import recipients

struct AudienceTests {
  @Test("RE-6 of the asked ids only the account's own come back")
  func check() async throws {
    try await RecipientsFixture.with { fixture in
      let (ben, carl) = (try await fixture.add(), try await fixture.add(RecipientsFixture.request("Carl")))
      let foreign = try await fixture.add(by: fixture.stranger)
      let (group, other) = (
        try await fixture.createGroup("A", [carl]), try await fixture.createGroup("A", by: fixture.stranger)
      )
      let answer = try await fixture.check(
        recipients: [ben.recipientID, foreign.recipientID, "\(Identifier())", ben.recipientID],
        groups: [other.groupID, group.groupID, "\(Identifier())"])
      #expect(answer == .init(recipients: [ben], groupIDs: [group.groupID]))
      #expect(try await fixture.check() == .init())
      #expect(try await fixture.check(recipients: [ben.recipientID], of: fixture.stranger) == .init())
    }
  }

  @Test("RE-6 at most 1,000 recipients and 200 groups are asked for at once")
  func limits() async throws {
    try await RecipientsFixture.with { fixture async throws in
      func ids(_ count: Int) -> [String] { (0..<count).map { _ in "\(Identifier())" } }
      #expect(try await fixture.check(recipients: ids(1000), groups: ids(200)) == .init())
      for (recipients, groups, field) in [
        (ids(1001), [], "recipient_ids"), ([], ids(201), "group_ids"), (["x"], [], "recipient_ids[0]"),
      ] {
        let error = try await refusal { try await fixture.check(recipients: recipients, groups: groups) }
        #expect(error.violations.map(\.field) == [field])
      }
    }
  }

  @Test("OP-34 freezing returns all recipients and groups as they stand, a repeat the same")
  func freeze() async throws {
    try await RecipientsFixture.with { fixture in
      let (ben, carl) = (try await fixture.add(), try await fixture.add(RecipientsFixture.request("Carl")))
      let group = try await fixture.createGroup("A", [ben, carl])
      _ = try await fixture.add(by: fixture.stranger)
      let frozen = try await fixture.freeze()
      #expect(Set(frozen.recipients.map(\.recipientID)) == [ben.recipientID, carl.recipientID])
      #expect(frozen.recipients.allSatisfy { $0.groupIDs == [group.groupID] })
      #expect(frozen.groups == [group])
      #expect(try await fixture.freeze() == frozen)
      #expect(try await fixture.freeze(Identifier()) == .init())
    }
  }

  @Test("OP-34 once frozen nothing of the account changes, by whatever call; reading goes on")
  func closed() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      let group = try await fixture.createGroup("A", [ben])
      let token = try await fixture.tokens()[0]
      try await fixture.agePrompts("7 days")
      let frozen = try await fixture.freeze()
      let calls: [() async throws -> Void] = [
        { _ = try await fixture.add(RecipientsFixture.request("New")) }, { _ = try await fixture.update(ben) },
        { try await fixture.remove(ben) }, { _ = try await fixture.createGroup("B") },
        { _ = try await fixture.updateGroup(group) }, { try await fixture.deleteGroup(group) },
        { _ = try await fixture.sendPrompt(ben) }, { _ = try await fixture.answer(token, .declined) },
      ]
      for call in calls {
        let error = try await refusal(call)
        #expect((error.code, error.reason) == (.failedPrecondition, "ACCOUNT_CLOSED"))
      }
      #expect(try await fixture.freeze() == frozen)
      #expect(try await fixture.list().recipients == frozen.recipients)
      #expect(try await fixture.count("send_queue") == 1)
      _ = try await fixture.add(by: fixture.stranger)
    }
  }
}

struct WiringTests {
  @Test("RE-6 every migration file is listed, in order")
  func migrations() {
    #expect(Migrations.all.map(\.name) == migrationFiles(of: "recipients"))
  }

  @Test("RE-6 every method has its callers: the owner, whoever has the link, or the services that must know")
  func access() {
    let open = [Calls.getPrompt, Calls.answerPrompt]
    for method in Calls.descriptor.methods {
      #expect(RecipientsParts.access[method] == (open.contains(method) ? .anyone : .owner))
    }
    #expect(RecipientsParts.access[AudienceCalls.checkAudience] == .services(["vault", "confirmation"]))
    #expect(RecipientsParts.access[AudienceCalls.freezeAudience] == .services(["delivery"]))
    #expect(RecipientsParts.access.count == Calls.descriptor.methods.count + AudienceCalls.descriptor.methods.count)
  }

  @Test("RE-6 the parts of the service fit together")
  func parts() async throws {
    try await TestRuntime.with(name: "recipients", migrations: Migrations.all) { runtime in
      let parts = try RecipientsParts.make(runtime)
      #expect(parts.services.count == 2 && parts.subscriptions.isEmpty && parts.workers.map(\.name) == ["courier"])
    }
  }

  @Test("RE-6 events hold ids and no name or address")
  func events() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      _ = try await fixture.answer(try await fixture.tokens()[0], .accepted)
      let group = try await fixture.createGroup("Family", [ben])
      let (account, recipient) = ("\(fixture.author)", ben.recipientID)
      let payloads = try await fixture.database.query("SELECT payload, subject_id FROM outbox ORDER BY sequence")
      #expect(
        try payloads.map { try $0.decode([UInt8].self, at: 0) } == [
          RecipientsV1.RecipientAdded(accountID: account, recipientID: recipient).serialized(),
          RecipientsV1.PromptRequested(accountID: account, recipientID: recipient).serialized(),
          RecipientsV1.AcceptanceChanged(accountID: account, recipientID: recipient, acceptance: 2).serialized(),
          RecipientsV1.GroupChanged(accountID: account, groupID: group.groupID).serialized(),
        ])
      #expect(try payloads.allSatisfy { try $0.decode(Identifier.self, at: 1) == fixture.author })
    }
  }
}
