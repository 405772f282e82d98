import API
import Postgres
import Primitives
import ServiceKit
import TestKit
import Testing
import vault

@Suite struct AudienceTests {
  private func remove(recipient: Identifier, from fixture: VaultFixture) async throws {
    let event = RecipientsV1.RecipientRemoved(accountID: "\(fixture.author)", recipientID: "\(recipient)")
    try await fixture.runtime.database.transaction { transaction in
      try await VaultEvents(fixture.runtime.dataKeys).recipientRemoved(event, transaction)
    }
  }

  private func change(group: Identifier, deleted: Bool, of fixture: VaultFixture) async throws {
    let event = RecipientsV1.GroupChanged(accountID: "\(fixture.author)", groupID: "\(group)", deleted: deleted)
    try await fixture.runtime.database.transaction { transaction in
      try await VaultEvents(fixture.runtime.dataKeys).groupChanged(event, transaction)
    }
  }

  @Test("OP-27 a ready message that loses its last recipient is a draft again, with its content")
  func lastRecipient() async throws {
    try await VaultFixture.with { fixture in
      let only = try await fixture.saveToVault(fixture.letter { $0.groupIDs = [] })
      let both = try await fixture.saveToVault(fixture.letter())
      let other = try await fixture.saveToVault(fixture.letter { $0.recipientIDs = [] })
      try await remove(recipient: fixture.recipient, from: fixture)
      let draft = try await fixture.get(only)
      #expect((draft.status, draft.content?.recipientIDs, draft.revision) == (.draft, [], 2))
      #expect(draft.content?.body == fixture.letter().body)
      let kept = try await fixture.get(both)
      #expect((kept.status, kept.content?.recipientIDs, kept.revision) == (.ready, [], 2))
      #expect(kept.content?.body == fixture.letter().body)
      #expect(try await fixture.get(other) == other)
      #expect(try await fixture.events().count == 4)
      // A repeat finds nothing to do.
      try await remove(recipient: fixture.recipient, from: fixture)
      #expect(try await fixture.get(only) == draft)
    }
  }

  @Test("OP-27 a deleted group leaves its messages; a changed one stays")
  func deletedGroup() async throws {
    try await VaultFixture.with { fixture in
      let only = try await fixture.saveToVault(fixture.letter { $0.recipientIDs = [] })
      try await change(group: fixture.group, deleted: false, of: fixture)
      #expect(try await fixture.get(only) == only)
      try await change(group: fixture.group, deleted: true, of: fixture)
      let draft = try await fixture.get(only)
      #expect((draft.status, draft.content?.groupIDs) == (.draft, []))
    }
  }

  @Test("OP-27 after the freeze a message stays as it was confirmed")
  func frozen() async throws {
    try await VaultFixture.with { fixture in
      let message = try await fixture.saveToVault(fixture.letter { $0.groupIDs = [] })
      _ = try await fixture.listReady(try fixture.statement(for: fixture.author))
      try await remove(recipient: fixture.recipient, from: fixture)
      #expect(try await fixture.get(message) == message)
    }
  }
}
