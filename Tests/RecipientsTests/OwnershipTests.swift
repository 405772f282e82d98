import API
import Postgres
import Primitives
import RPC
import TestKit
import Testing
import recipients

/// One call on an object, as its owner or somebody else would make it.
struct Attempt: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let call:
    @Sendable (RecipientsFixture, RecipientsV1.Recipient, RecipientsV1.Group, _ by: Identifier) async throws -> Void

  static let all = [
    Attempt(testDescription: "GetRecipient") { _ = try await $0.get($1, by: $3) },
    Attempt(testDescription: "UpdateRecipient") { _ = try await $0.update($1, by: $3) },
    Attempt(testDescription: "RemoveRecipient") { try await $0.remove($1, by: $3) },
    Attempt(testDescription: "SendPrompt") { _ = try await $0.sendPrompt($1, by: $3) },
    Attempt(testDescription: "GetGroup") { _ = try await $0.getGroup($2, by: $3) },
    Attempt(testDescription: "UpdateGroup") { _ = try await $0.updateGroup($2, by: $3) },
    Attempt(testDescription: "DeleteGroup") { try await $0.deleteGroup($2, by: $3) },
  ]
}

struct OwnershipTests {
  @Test("RE-6 another account's recipient or group is as one that does not exist", arguments: Attempt.all)
  func foreign(_ attempt: Attempt) async throws {
    try await RecipientsFixture.with { fixture in
      let recipient = try await fixture.add()
      let group = try await fixture.createGroup("Family")
      var (missingRecipient, missingGroup) = (recipient, group)
      missingRecipient.recipientID = "\(Identifier())"
      missingGroup.groupID = "\(Identifier())"
      let foreign = try await refusal { try await attempt.call(fixture, recipient, group, fixture.stranger) }
      let missing = try await refusal {
        try await attempt.call(fixture, missingRecipient, missingGroup, fixture.stranger)
      }
      #expect(foreign.code == .notFound)
      #expect((foreign.reason, foreign.message) == (missing.reason, missing.message))
      #expect(try await fixture.get(recipient) == recipient)
      #expect(try await fixture.getGroup(group) == group)
    }
  }

  @Test("RE-6 an id that is no UUID is INVALID_ARGUMENT", arguments: Attempt.all)
  func malformed(_ attempt: Attempt) async throws {
    try await RecipientsFixture.with { fixture in
      let error = try await refusal {
        try await attempt.call(fixture, .init(recipientID: "x"), .init(groupID: "x", name: "n"), fixture.author)
      }
      #expect(error.violations.map(\.field).allSatisfy { ["recipient_id", "group_id"].contains($0) })
      #expect(error.violations.count == 1)
    }
  }

  @Test("RE-6 without a signed-in person every call of an owner is UNAUTHENTICATED")
  func anonymous() async throws {
    try await RecipientsFixture.with { fixture async throws in
      let service = fixture.service
      let nobody = CallContext.anonymous(Calls.addRecipient)
      let calls: [() async throws -> Void] = [
        { _ = try await service.addRecipient(.init(), nobody) },
        { _ = try await service.getRecipient(.init(), nobody) },
        { _ = try await service.listRecipients(.init(), nobody) },
        { _ = try await service.updateRecipient(.init(), nobody) },
        { _ = try await service.removeRecipient(.init(), nobody) },
        { _ = try await service.createGroup(.init(), nobody) },
        { _ = try await service.getGroup(.init(), nobody) }, { _ = try await service.listGroups(.init(), nobody) },
        { _ = try await service.updateGroup(.init(), nobody) }, { _ = try await service.deleteGroup(.init(), nobody) },
        { _ = try await service.sendPrompt(.init(), nobody) },
      ]
      for call in calls { #expect(try await refusal(call).code == .unauthenticated) }
    }
  }

  @Test("RE-1 a repeated request gives the same answer and one effect; with another body it is refused")
  func repeats() async throws {
    try await RecipientsFixture.with { fixture in
      var request = RecipientsFixture.request()
      request.promptChannels = [.email]
      let ben = try await fixture.add(request)
      #expect(try await fixture.add(request) == ben)
      request.name = "Other"
      let reused = try await refusal { try await fixture.add(request) }
      #expect((reused.code, reused.reason) == (.invalidArgument, "REQUEST_ID_REUSED"))
      #expect(try await fixture.count("send_queue") == 1)

      let id = Identifier()
      let changed = try await fixture.update(ben, requestID: id) { $0.name = "B" }
      #expect(try await fixture.update(ben, requestID: id) { $0.name = "B" } == changed)
      #expect(
        try await refusal { try await fixture.update(ben, requestID: id) { $0.name = "C" } }.reason
          == "REQUEST_ID_REUSED")

      let group = try await fixture.createGroup("A", requestID: id)
      #expect(try await fixture.createGroup("A", requestID: id) == group)
      #expect(try await refusal { try await fixture.createGroup("B", requestID: id) }.reason == "REQUEST_ID_REUSED")
      let renamed = try await fixture.updateGroup(group, requestID: id) { $0.name = "B" }
      #expect(try await fixture.updateGroup(group, requestID: id) { $0.name = "B" } == renamed)
      #expect(try await refusal { try await fixture.updateGroup(group, requestID: id) }.reason == "REQUEST_ID_REUSED")

      try await fixture.agePrompts("7 days")
      let prompted = try await fixture.sendPrompt(ben, requestID: id)
      #expect(try await fixture.sendPrompt(ben, requestID: id) == prompted)
      #expect(try await fixture.count("send_queue") == 2)

      for _ in 0..<2 { try await fixture.deleteGroup(group, requestID: id) }
      #expect(try await refusal { try await fixture.deleteGroup(group) }.code == .notFound)
      for _ in 0..<2 { try await fixture.remove(ben, requestID: id) }
      #expect(try await refusal { try await fixture.remove(ben) }.code == .notFound)
      #expect(try await fixture.count("recipients") + fixture.count("groups") == 0)
    }
  }

  @Test("RE-18 a repeated answer is given once; its id does not serve for another")
  func repeatedAnswer() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.addPrompted()
      let (token, id) = (try await fixture.tokens()[0], Identifier())
      let first = try await fixture.answer(token, .accepted, requestID: id)
      _ = try await fixture.answer(token, .declined)
      #expect(try await fixture.answer(token, .accepted, requestID: id) == first)
      #expect(
        try await refusal { try await fixture.answer(token, .declined, requestID: id) }.reason == "REQUEST_ID_REUSED")
      #expect(try await fixture.get(ben).acceptance == .declined)
    }
  }

  @Test("RE-1 two equal additions at once make one recipient, under one request id or two")
  func parallel() async throws {
    try await RecipientsFixture.with { fixture async throws in
      let request = RecipientsFixture.request()
      async let first = fixture.add(request)
      async let second = fixture.add(request)
      #expect(try await first == second)
      let (carl, again) = (RecipientsFixture.request("Carl"), RecipientsFixture.request("Carl"))
      async let one = Result { try await fixture.add(carl) }
      async let other = Result { try await fixture.add(again) }
      let outcomes = await [one, other]
      #expect(outcomes.filter { (try? $0.get()) != nil }.count == 1)
      #expect(try await fixture.count("recipients") == 2)
    }
  }

  @Test("OP-33 with identity out of reach what depends on it is UNAVAILABLE and changes nothing; lists work")
  func unavailable() async throws {
    try await RecipientsFixture.with(identity: false) { fixture async throws in
      let ben = RecipientsV1.Recipient(
        recipientID: "\(Identifier())", name: "B", email: "b@afterthoughts.example", relationship: .friend)
      #expect(try await refusal { try await fixture.add() }.code == .unavailable)
      #expect(try await refusal { try await fixture.update(ben) }.code == .unavailable)
      #expect(try await refusal { try await fixture.sendPrompt(ben) }.code == .unavailable)
      #expect(try await fixture.list().recipients == [])
      #expect(try await fixture.count("requests") + fixture.count("recipients") == 0)
    }
  }
}

extension Result where Failure == any Error {
  init(_ body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
