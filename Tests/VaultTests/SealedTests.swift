import API
import Postgres
import Primitives
import ServiceKit
import Testing
import vault

@Suite struct SealedTests {
  /// Every table's every column, as text and as the text that its bytes spell.
  private func content(of database: Database) async throws -> [(table: String, text: String)] {
    var found: [(String, String)] = []
    let tables = try await database.query(
      "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()")
    for row in tables {
      let table = try row.decode(String.self, at: 0)
      // The text of a bytea is hexadecimal; undone, any clear text in it shows.
      let rows = try await database.query(
        """
        SELECT t::text || coalesce((
          SELECT string_agg(encode(decode(substr(value, 3), 'hex'), 'escape'), ' ')
          FROM jsonb_each_text(to_jsonb(t)) WHERE value ~ '^\\\\x([0-9a-f]{2})*$'), '')
        FROM \(unescaped: table) AS t
        """)
      for row in rows { found.append((table, try row.decode(String.self, at: 0))) }
    }
    return found
  }

  @Test("VA-6 OP-26 no letter, note or folder text, nor a folder title, stands anywhere in clear")
  func nothingInClear() async throws {
    try await VaultFixture.with { fixture in
      let draft = try await fixture.saveDraft(fixture.letter { $0.body = "MARK-letter-draft" })
      _ = try await fixture.saveToVault(fixture.letter { $0.body = "MARK-letter-ready" }, over: draft)
      _ = try await fixture.saveToVault(fixture.letter { ($0.type, $0.title, $0.body) = (.note, "SEEN", "MARK-note") })
      _ = try await fixture.saveItem("MARK-folder-title", "MARK-folder-text")
      let content = try await content(of: fixture.runtime.database)
      // The scan sees what is in clear: a title, and the type of an event.
      #expect(content.contains { $0.table == "messages" && $0.text.contains("SEEN") })
      #expect(content.contains { $0.table == "outbox" && $0.text.contains("MessageSaved") })
      // And it looks into binary columns: a message's id stands in the payload of its event only.
      #expect(content.contains { $0.table == "outbox" && $0.text.contains(draft.messageID) })
      for (table, text) in content { #expect(!text.contains("MARK"), "in \(table)") }
    }
  }

  @Test("VA-6 a sealed body does not open in another author's row, nor after the author's key is gone")
  func bound() async throws {
    try await VaultFixture.with { fixture in
      let stranger = Identifier()
      let mine = try await fixture.saveToVault(fixture.letter())
      let other = try await fixture.saveToVault(fixture.letter { $0.body = "Other" })
      let theirs = try await fixture.saveDraft(fixture.letter(), by: stranger)
      for message in [other, theirs] {
        _ = try await fixture.runtime.database.execute(
          """
          UPDATE messages SET body = (SELECT body FROM messages WHERE message_id = \(Identifier(mine.messageID)!))
          WHERE message_id = \(Identifier(message.messageID)!)
          """)
      }
      await #expect(throws: (any Error).self) { try await fixture.get(other) }
      await #expect(throws: (any Error).self) { try await fixture.get(theirs, by: stranger) }
      #expect(try await fixture.get(mine) == mine)
    }
  }
}
