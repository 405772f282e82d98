import API
import Postgres
import Primitives
import ServiceKit
import TestKit
import Testing
import vault

@Suite struct FolderTests {
  typealias Calls = VaultFixture.Calls

  private func list(
    _ fixture: VaultFixture, _ section: VaultV1.FolderSection = .unspecified, by account: Identifier? = nil
  ) async throws -> [VaultV1.FolderItem] {
    try await fixture.vault.listFolderItems(
      .init(section: section), fixture.owner(Calls.listFolderItems, account)
    ).items
  }

  private func get(_ fixture: VaultFixture, _ item: VaultV1.FolderItem) async throws -> VaultV1.FolderItem? {
    try await fixture.vault.getFolderItem(.init(itemID: item.itemID), fixture.owner(Calls.getFolderItem)).item
  }

  private func delete(_ fixture: VaultFixture, _ item: VaultV1.FolderItem) async throws {
    _ = try await fixture.vault.deleteFolderItem(
      .init(requestID: "\(Identifier())", itemID: item.itemID), fixture.owner(Calls.deleteFolderItem))
  }

  @Test(
    "VA-31 an item of each section is created, read, changed and deleted",
    arguments: [
      VaultV1.FolderSection.insurance, .finalWishes, .accounts, .other,
    ])
  func life(_ section: VaultV1.FolderSection) async throws {
    try await VaultFixture.with { fixture in
      let saved = try await fixture.saveItem("Policy", "No. 42\n", section: section)
      #expect((saved.section, saved.title, saved.text, saved.revision) == (section, "Policy", "No. 42\n", 1))
      #expect(try await get(fixture, saved) == saved)
      let changed = try await fixture.saveItem("Policy", "", section: .other, over: saved)
      #expect((changed.itemID, changed.text, changed.revision, changed.section) == (saved.itemID, "", 2, .other))
      #expect(try await get(fixture, saved) == changed)
      try await delete(fixture, saved)
      #expect(try await refusal { try await get(fixture, saved) }.code == .notFound)
      #expect(try await refusal { try await delete(fixture, saved) }.code == .notFound)
    }
  }

  @Test("VA-31 the list has the items of a section, or all, by title and without text")
  func lists() async throws {
    try await VaultFixture.with { fixture in
      for (title, section) in [("b", .accounts), ("C", .insurance), ("A", .insurance)]
        as [(
          String, VaultV1.FolderSection
        )]
      {
        _ = try await fixture.saveItem(title, "text", section: section)
      }
      #expect(try await list(fixture).map(\.title) == ["A", "b", "C"])
      #expect(try await list(fixture).allSatisfy { $0.text.isEmpty })
      #expect(try await list(fixture, .insurance).map(\.title) == ["A", "C"])
      #expect(try await list(fixture, .other) == [])
      #expect(try await list(fixture, by: Identifier()) == [])
      let error = try await refusal { try await list(fixture, .init(rawValue: 9)) }
      #expect(error.violations.map(\.field) == ["section"])
    }
  }

  @Test("VA-31 a title has 1 to 200 characters, a text at most 20,000")
  func limits() async throws {
    try await VaultFixture.with { fixture in
      let title = String(repeating: "t", count: 200)
      let text = String(repeating: "é", count: 20_000)
      let saved = try await fixture.saveItem(title, text)
      #expect(try await get(fixture, saved)?.text == text)
      let long = try await refusal { try await fixture.saveItem(title + "t", text + "x") }
      #expect(long.violations.map(\.field) == ["title", "text"])
      let empty = try await refusal { try await fixture.saveItem(" ", "a\u{0b}b", section: .unspecified) }
      #expect(empty.violations.map(\.field) == ["section", "title", "text"])
      #expect(try await fixture.count("folder_items") == 1)
    }
  }

  @Test("VA-31 a save over another revision is refused and changes nothing")
  func revisions() async throws {
    try await VaultFixture.with { fixture in
      let first = try await fixture.saveItem("One", "1")
      let second = try await fixture.saveItem("Two", "2", over: first)
      let error = try await refusal { try await fixture.saveItem("Three", "3", over: first) }
      #expect((error.code, error.reason) == (.aborted, "REVISION_MISMATCH"))
      #expect(try await get(fixture, first) == second)
    }
  }

  @Test("VA-31 a folder has at most 500 items")
  func countLimit() async throws {
    try await VaultFixture.with { fixture in
      let item = try await fixture.saveItem("One", "1")
      _ = try await fixture.runtime.database.execute(
        """
        INSERT INTO folder_items (item_id, owner_id, section, title, text, revision)
        SELECT gen_random_uuid(), \(fixture.author), 1, '', '', 1 FROM generate_series(1, 498)
        """)
      _ = try await fixture.saveItem("500", "")
      let error = try await refusal { try await fixture.saveItem("501", "") }
      #expect((error.code, error.reason) == (.resourceExhausted, "FOLDER_FULL"))
      _ = try await fixture.saveItem("Changed", "", over: item)
      #expect(try await fixture.count("folder_items") == 500)
    }
  }
}
