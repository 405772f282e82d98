import API
import Postgres
import Primitives
import Protobuf
import TestKit
import Testing
import recipients

struct RecipientTests {
  @Test("RE-1 a recipient has an id, what the author entered, a pending answer and a first revision")
  func add() async throws {
    try await RecipientsFixture.with { fixture in
      var request = RecipientsFixture.request()
      (request.name, request.email, request.phone) = ("  Ben Meyer ", "Ben@Afterthoughts.EXAMPLE", "+49 (30) 123-4567")
      let added = try await fixture.add(request)
      #expect(Identifier(added.recipientID) != nil && added.createTime != nil && added.promptTime == nil)
      #expect((added.name, added.email, added.phone) == ("Ben Meyer", "Ben@afterthoughts.example", "+49301234567"))
      #expect((added.relationship, added.acceptance, added.revision) == (.friend, .pending, 1))
      #expect(added.groupIDs == [])
      #expect(try await fixture.get(added) == added)
      #expect(try await fixture.events() == ["RecipientAdded"])
      #expect(try await fixture.count("send_queue") == 0)
    }
  }

  @Test("RE-1 every wrong field is named at once, and nothing is stored")
  func faults() async throws {
    try await RecipientsFixture.with { fixture in
      let all = RecipientsV1.AddRecipientRequest(requestID: "\(Identifier())", name: " ", email: "x", phone: "030")
      #expect(
        try await refusal { try await fixture.add(all) }.violations.map(\.field)
          == ["name", "email", "phone", "relationship"])
      let faults: [(String, (inout RecipientsV1.AddRecipientRequest) -> Void)] = [
        ("name", { $0.name = String(repeating: "ä", count: 81) }), ("name", { $0.name = "a\u{202E}b" }),
        ("name", { $0.name = "a\r\nBcc: b" }),
        ("email", { $0.email = "a\r\nb@afterthoughts.example" }),
        ("email", { $0.email = RecipientTests.address(bytes: 255) }), ("phone", { $0.phone = "+1234567" }),
        ("phone", { $0.phone = "+1234567890123456" }), ("relationship", { $0.relationship = .init(rawValue: 5) }),
        ("group_ids[0]", { $0.groupIDs = ["x"] }),
        ("group_ids", { $0.groupIDs = (0..<51).map { _ in "\(Identifier())" } }),
        ("prompt_channels[1]", { $0.promptChannels = [.email, .init(rawValue: 3)] }),
        ("request_id", { $0.requestID = "" }),
      ]
      for (field, change) in faults {
        var request = RecipientsFixture.request()
        change(&request)
        let error = try await refusal { try await fixture.add(request) }
        #expect((error.code, error.violations.map(\.field)) == (.invalidArgument, [field]))
      }
      #expect(try await fixture.count("recipients") == 0)
    }
  }

  @Test("RE-1 fields at their limits are taken")
  func limits() async throws {
    try await RecipientsFixture.with { fixture async throws in
      for (index, phone) in ["", "+12345678", "+123456789012345"].enumerated() {
        var request = RecipientsFixture.request(String(repeating: "é", count: 80), "b\(index)@afterthoughts.example")
        request.phone = phone
        #expect(try await fixture.add(request).phone == phone)
      }
      #expect(try await fixture.add(RecipientsFixture.request("N", RecipientTests.address(bytes: 254))).name == "N")
    }
  }

  @Test("RE-2 the relationship is one of four", arguments: [1, 2, 3, 4] as [Int32])
  func relationships(_ number: Int32) async throws {
    try await RecipientsFixture.with { fixture async throws in
      var request = RecipientsFixture.request()
      request.relationship = .init(rawValue: number)
      #expect(try await fixture.add(request).relationship.rawValue == number)
    }
  }

  @Test("RE-3 a recipient can join groups while being added; a group of another is NOT_FOUND and nobody is added")
  func groups() async throws {
    try await RecipientsFixture.with { fixture in
      let groups = [try await fixture.createGroup("Family"), try await fixture.createGroup("Choir")]
      let foreign = try await fixture.createGroup("Family", by: fixture.stranger)
      var request = RecipientsFixture.request()
      request.groupIDs = (groups + [groups[0]]).map(\.groupID)
      let added = try await fixture.add(request)
      #expect(Set(added.groupIDs) == Set(groups.map(\.groupID)) && added.groupIDs.count == 2)
      #expect(try await fixture.getGroup(groups[0]).revision == groups[0].revision + 1)
      var other = RecipientsFixture.request("Carl")
      other.groupIDs = [groups[0].groupID, foreign.groupID]
      #expect(try await refusal { try await fixture.add(other) }.code == .notFound)
      #expect(try await fixture.count("recipients") == 1)
      #expect(try await fixture.getGroup(groups[0]).recipientIDs == [added.recipientID])
    }
  }

  @Test("OP-33 one entry per address and account, whatever the case; another account may have the same")
  func duplicates() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.add()
      let carl = try await fixture.add(RecipientsFixture.request("Carl"))
      let again = try await refusal {
        try await fixture.add(RecipientsFixture.request("B", "BEN@AFTERTHOUGHTS.example"))
      }
      #expect((again.code, again.reason) == (.alreadyExists, "EMAIL_TAKEN"))
      let moved = try await refusal { try await fixture.update(carl) { $0.email = "bEn@afterthoughts.example" } }
      #expect((moved.reason, moved.violations.map(\.field)) == ("EMAIL_TAKEN", ["email"]))
      #expect(try await fixture.get(carl) == carl)
      #expect(try await fixture.get(ben) == ben)
      _ = try await fixture.add(by: fixture.stranger)
      #expect(try await fixture.count("recipients") == 3)
    }
  }

  @Test("OP-33 the author's own address is refused, whatever the case")
  func ownAddress() async throws {
    try await RecipientsFixture.with { fixture in
      let added = try await refusal {
        try await fixture.add(RecipientsFixture.request("Me", "ANNA@afterthoughts.example"))
      }
      #expect((added.code, added.reason) == (.failedPrecondition, "OWN_EMAIL"))
      let ben = try await fixture.add()
      let changed = try await refusal { try await fixture.update(ben) { $0.email = "anna@afterthoughts.example" } }
      #expect(changed.reason == "OWN_EMAIL")
      // It became the author's own later: the entry can still be corrected.
      fixture.identity.change(fixture.author) { $0.email = "ben@afterthoughts.example" }
      #expect(try await fixture.update(ben, mask: ["name"]) { $0.name = "Benno" }.name == "Benno")
    }
  }

  @Test("RE-1 an account has at most 1,000 recipients")
  func recipientsMax() async throws {
    try await RecipientsFixture.with { fixture in
      try await fixture.database.execute(
        """
        INSERT INTO recipients (recipient_id, account_id, name, email, email_key, phone, relationship)
        SELECT gen_random_uuid(), \(fixture.author), 'N', n || '@x.example', n || '@x.example', '', 'other'
        FROM generate_series(1, 999) n
        """)
      _ = try await fixture.add()
      let error = try await refusal { try await fixture.add(RecipientsFixture.request("Carl")) }
      #expect((error.code, error.reason) == (.resourceExhausted, "TOO_MANY_RECIPIENTS"))
      #expect(try await fixture.freeze().recipients.count == 1000)
    }
  }

  @Test("RE-11 an update changes the fields of its mask and no other")
  func mask() async throws {
    try await RecipientsFixture.with { fixture in
      let old = try await fixture.add()
      let renamed = try await fixture.update(old, mask: ["name"]) { ($0.name, $0.email) = ("Benno", "nonsense") }
      #expect((renamed.name, renamed.email, renamed.revision) == ("Benno", old.email, 2))
      let all = try await fixture.update(renamed) {
        ($0.name, $0.email, $0.phone, $0.relationship) = ("C", "c@afterthoughts.example", "+12345678", .family)
        ($0.acceptance, $0.recipientID) = (.accepted, "\(Identifier())")
      }
      #expect(
        (all.name, all.email, all.phone, all.relationship) == ("C", "c@afterthoughts.example", "+12345678", .family))
      #expect((all.acceptance, all.recipientID, all.revision) == (.pending, old.recipientID, 3))
      #expect(try await fixture.get(old) == all)
      #expect(try await fixture.update(all, mask: ["phone"]) { $0.phone = "" }.phone == "")
      #expect(
        try await fixture.events() == ["RecipientAdded", "RecipientChanged", "RecipientChanged", "RecipientChanged"])
    }
  }

  @Test("RE-7 the answer is not for the author to write, and a wrong field of an update is named by its path")
  func updateFaults() async throws {
    try await RecipientsFixture.with { fixture in
      let old = try await fixture.add()
      for path in ["acceptance", "recipient_id", "group_ids", "Name", ""] {
        let error = try await refusal { try await fixture.update(old, mask: ["name", path]) }
        #expect(error.violations.map(\.field) == ["update_mask"])
      }
      let error = try await refusal { try await fixture.update(old) { ($0.name, $0.email) = ("", "") } }
      #expect(error.violations.map(\.field) == ["recipient.name", "recipient.email"])
      #expect(try await fixture.get(old) == old)
    }
  }

  @Test("RE-11 a revision that is not the last is ABORTED and changes nothing", arguments: [-1, 1, 0] as [Int64])
  func revision(_ offset: Int64) async throws {
    try await RecipientsFixture.with { fixture in
      var old = try await fixture.update(try await fixture.add()) { $0.name = "Second" }
      let stored = old
      old.revision = offset == 0 ? 0 : old.revision + offset
      let error = try await refusal { try await fixture.update(old) { $0.name = "Third" } }
      #expect((error.code, error.reason) == (.aborted, "REVISION_MISMATCH"))
      #expect(try await fixture.get(stored) == stored)
    }
  }

  @Test("RE-11 a removed recipient is gone for good, also from the groups, whose revision grows")
  func remove() async throws {
    try await RecipientsFixture.with { fixture in
      let (ben, carl) = (try await fixture.addPrompted(), try await fixture.add(RecipientsFixture.request("Carl")))
      let group = try await fixture.createGroup("All", [ben, carl])
      let token = try await fixture.tokens()[0]
      try await fixture.remove(ben)
      #expect(try await refusal { try await fixture.get(ben) }.code == .notFound)
      #expect(try await refusal { try await fixture.remove(ben) }.code == .notFound)
      #expect(try await refusal { try await fixture.getPrompt(token) }.code == .notFound)
      let left = try await fixture.getGroup(group)
      #expect((left.recipientIDs, left.revision) == ([carl.recipientID], group.revision + 1))
      #expect(try await fixture.count("prompts") == 0)
      #expect(try await fixture.events().last == "RecipientRemoved")
    }
  }

  /// A valid address of that length.
  static func address(bytes: Int) -> String {
    let label = String(repeating: "a", count: 60)
    let start = "\(label)@\(label).\(label).\(label)."
    return start + String(repeating: "b", count: bytes - start.utf8.count)
  }
}
