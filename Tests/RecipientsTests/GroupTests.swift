import API
import Postgres
import Primitives
import TestKit
import Testing
import recipients

struct GroupTests {
  @Test("RE-12 a group has a name and members, each once; it can be listed, changed and deleted, its members stay")
  func groups() async throws {
    try await RecipientsFixture.with { fixture in
      let (ben, carl) = (try await fixture.add(), try await fixture.add(RecipientsFixture.request("Carl")))
      let choir = try await fixture.createGroup(" Choir ", [ben, ben])
      #expect((choir.name, choir.recipientIDs, choir.revision) == ("Choir", [ben.recipientID], 1))
      #expect(choir.createTime != nil)
      let band = try await fixture.createGroup("band")
      #expect(try await fixture.groups() == [band, choir])
      #expect(try await fixture.groups(by: fixture.stranger) == [])
      let changed = try await fixture.updateGroup(choir) {
        ($0.name, $0.recipientIDs) = ("Quartet", [carl.recipientID])
      }
      #expect((changed.name, changed.recipientIDs, changed.revision) == ("Quartet", [carl.recipientID], 2))
      #expect(try await fixture.getGroup(choir) == changed)
      try await fixture.deleteGroup(choir)
      #expect(try await refusal { try await fixture.getGroup(choir) }.code == .notFound)
      #expect(try await fixture.get(carl).groupIDs == [])
      #expect(
        try await fixture.events().suffix(4) == ["GroupChanged", "GroupChanged", "GroupChanged", "GroupChanged"])
    }
  }

  @Test("RE-13 a recipient can be in several groups")
  func several() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.add()
      let groups = [try await fixture.createGroup("A", [ben]), try await fixture.createGroup("B", [ben])]
      #expect(Set(try await fixture.get(ben).groupIDs) == Set(groups.map(\.groupID)))
    }
  }

  @Test("OP-33 a group's name is unique to the account, whatever case and spacing; another account may have it too")
  func names() async throws {
    try await RecipientsFixture.with { fixture in
      let choir = try await fixture.createGroup("Straßen Choir")
      let other = try await fixture.createGroup("Other")
      let created = try await refusal { try await fixture.createGroup("STRASSEN  choir") }
      #expect((created.code, created.reason) == (.alreadyExists, "GROUP_NAME_TAKEN"))
      let renamed = try await refusal { try await fixture.updateGroup(other) { $0.name = "straßen choir" } }
      #expect((renamed.reason, renamed.violations.map(\.field)) == ("GROUP_NAME_TAKEN", ["name"]))
      #expect(try await fixture.updateGroup(choir) { $0.name = "STRASSEN CHOIR" }.name == "STRASSEN CHOIR")
      _ = try await fixture.createGroup("Other", by: fixture.stranger)
      #expect(try await fixture.count("groups") == 3)
    }
  }

  @Test("RE-12 a name of 1 to 80 characters; a member that is not the account's is NOT_FOUND and changes nothing")
  func faults() async throws {
    try await RecipientsFixture.with { fixture in
      let ben = try await fixture.add()
      let foreign = try await fixture.add(by: fixture.stranger)
      let group = try await fixture.createGroup(String(repeating: "ü", count: 80), [ben])
      for name in ["", " \u{200B}", String(repeating: "ü", count: 81), "a\nb"] {
        #expect(try await refusal { try await fixture.createGroup(name) }.violations.map(\.field) == ["name"])
        var renamed = group
        renamed.name = name
        let error = try await refusal { [renamed] in try await fixture.updateGroup(renamed) }
        #expect(error.violations.map(\.field) == ["name"])
      }
      for members in [[foreign], [ben, foreign], [.init(recipientID: "\(Identifier())")]] {
        #expect(try await refusal { try await fixture.createGroup("New", members) }.code == .notFound)
        var changed = group
        changed.recipientIDs = members.map(\.recipientID)
        let error = try await refusal { [changed] in try await fixture.updateGroup(changed) }
        #expect(error.code == .notFound)
      }
      let many = (0..<1001).map { _ in RecipientsV1.Recipient(recipientID: "\(Identifier())") }
      let error = try await refusal { try await fixture.createGroup("New", many) }
      #expect(error.violations.map(\.field) == ["recipient_ids"])
      #expect(try await fixture.groups() == [group])
    }
  }

  @Test("RE-12 an account has at most 200 groups")
  func groupsMax() async throws {
    try await RecipientsFixture.with { fixture in
      try await fixture.database.execute(
        """
        INSERT INTO groups (group_id, account_id, name, name_key)
        SELECT gen_random_uuid(), \(fixture.author), n::text, n::text FROM generate_series(1, 199) n
        """)
      _ = try await fixture.createGroup("The last")
      let error = try await refusal { try await fixture.createGroup("One more") }
      #expect((error.code, error.reason) == (.resourceExhausted, "TOO_MANY_GROUPS"))
      #expect(try await fixture.groups().count == 200)
    }
  }

  @Test("RE-15 a revision that is not the last is ABORTED and changes nothing", arguments: [0, 1, 3] as [Int64])
  func revision(_ revision: Int64) async throws {
    try await RecipientsFixture.with { fixture in
      let stored = try await fixture.updateGroup(try await fixture.createGroup("A"))
      let error = try await refusal {
        try await fixture.updateGroup(stored) { ($0.revision, $0.name) = (revision, "B") }
      }
      #expect((error.code, error.reason) == (.aborted, "REVISION_MISMATCH"))
      #expect(try await fixture.getGroup(stored) == stored)
    }
  }
}
