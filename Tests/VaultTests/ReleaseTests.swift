import API
import Events
import Postgres
import Primitives
import Protobuf
import Sealing
import ServiceKit
import TestKit
import Testing
import vault

@Suite struct ReleaseTests {
  typealias Signed = ConfirmationV1.SignedStatement

  @Test("VA-30 with the confirmation's statement every ready message is listed in order of creation, and no draft")
  func listing() async throws {
    try await VaultFixture.with { fixture in
      var ready: [VaultV1.Message] = []
      for _ in 0..<3 {
        ready.append(try await fixture.saveToVault(fixture.letter()))
        _ = try await fixture.saveDraft(fixture.letter())
      }
      _ = try await fixture.saveDraft(fixture.letter(), over: ready.removeFirst())
      _ = try await fixture.saveToVault(fixture.letter(), by: Identifier())
      let statement = try fixture.statement(for: fixture.author)
      for size in [Int32(0), 1, 2, 5000] {
        var listed: [VaultV1.ReadyMessage] = []
        var token = ""
        repeat {
          let page = try await fixture.listReady(statement, pageSize: size, pageToken: token)
          listed += page.messages
          token = page.nextPageToken
        } while !token.isEmpty
        #expect(listed.map(\.messageID) == ready.map(\.messageID))
        #expect(listed.first?.recipientIDs == ["\(fixture.recipient)"])
        #expect(listed.first?.groupIDs == ["\(fixture.group)"])
        #expect(listed.first?.deliveryCondition == ready.first?.content?.deliveryCondition)
      }
    }
  }

  @Test("VA-30 a ready message is opened for its account's statement, and each opening is written down")
  func reading() async throws {
    try await VaultFixture.with { fixture in
      let note = try await fixture.saveToVault(fixture.letter { $0.type = .note })
      let statement = try fixture.statement(for: fixture.author)
      for _ in 0..<2 {
        let read = try await fixture.readDelivered(statement, note.messageID)
        #expect(read == .init(type: .note, title: "For Anna", body: fixture.letter().body))
      }
      let rows = try await fixture.runtime.database.query(
        "SELECT message_id, owner_id, caller, read_time <= now() FROM release_reads ORDER BY sequence")
      #expect(rows.count == 2)
      for row in rows {
        let (message, owner, caller, isPast) = try row.decode((Identifier, Identifier, String, Bool).self)
        #expect("\(message)" == note.messageID)
        #expect((owner, caller, isPast) == (fixture.author, "delivery", true))
      }
    }
  }

  @Test("VA-30 a statement that is missing, forged, altered or of another account opens and freezes nothing")
  func statements() async throws {
    try await VaultFixture.with { fixture in
      let message = try await fixture.saveToVault(fixture.letter())
      let good = try fixture.statement(for: fixture.author)
      let other = try fixture.statement(for: Identifier())
      var altered = good
      altered.statement[altered.statement.count - 1] ^= 1
      let key = fixture.statementKey
      let refused: [(String, Signed?)] = [
        ("none", nil), ("empty", .init()),
        ("another key's", try fixture.statement(for: fixture.author, key: .random())),
        ("altered", altered), ("another's body", .init(statement: good.statement, signature: other.signature)),
        ("unsigned", .init(statement: good.statement, keyID: good.keyID)),
        (
          "without the prefix",
          .init(statement: good.statement, signature: try key.sign(good.statement), keyID: good.keyID)
        ),
        ("no statement", .init(statement: [0xff], signature: try key.sign(ReleaseRules.prefix + [0xff]))),
        ("of nobody", .init(statement: [], signature: try key.sign(ReleaseRules.prefix))),
      ]
      for (name, statement) in refused {
        let list = try await refusal { try await fixture.listReady(statement) }
        #expect(list.code == .permissionDenied, "\(name)")
        let read = try await refusal { try await fixture.readDelivered(statement, message.messageID) }
        #expect(read.code == .permissionDenied, "\(name)")
      }
      #expect(try await refusal { try await fixture.readDelivered(other, message.messageID) }.code == .notFound)
      #expect(try await fixture.count("release_reads") == 0)
      // Nothing was frozen, and the good one still works, whatever it says of its key.
      _ = try await fixture.saveDraft(fixture.letter())
      let unnamed = Signed(statement: good.statement, signature: good.signature)
      #expect(try await fixture.listReady(unnamed).messages.count == 1)
    }
  }

  @Test("VA-30 changing a draft's status in the database opens nothing")
  func editedStatus() async throws {
    try await VaultFixture.with { fixture in
      let draft = try await fixture.saveDraft(fixture.letter())
      let statement = try fixture.statement(for: fixture.author)
      #expect(try await refusal { try await fixture.readDelivered(statement, draft.messageID) }.code == .notFound)
      #expect(try await fixture.count("release_reads") == 0)
      _ = try await fixture.runtime.database.execute("UPDATE messages SET status = 2")
      await #expect(throws: SealingError.notAuthentic) {
        try await fixture.readDelivered(statement, draft.messageID)
      }
    }
  }

  @Test(
    "VA-30 lines of the reading record cannot be changed or removed",
    arguments: [
      "UPDATE release_reads SET caller = 'nobody'", "DELETE FROM release_reads", "TRUNCATE release_reads",
    ])
  func record(_ statement: String) async throws {
    try await VaultFixture.with { fixture in
      let message = try await fixture.saveToVault(fixture.letter())
      _ = try await fixture.readDelivered(try fixture.statement(for: fixture.author), message.messageID)
      await #expect(throws: PostgresError.self) {
        try await fixture.runtime.database.execute("\(unescaped: statement)")
      }
      #expect(try await fixture.count("release_reads WHERE caller = 'delivery'") == 1)
    }
  }

  @Test("VA-22 after the first call of ListReady nothing of the account changes; others go on")
  func frozen() async throws {
    try await VaultFixture.with { fixture in
      let message = try await fixture.saveToVault(fixture.letter())
      let item = try await fixture.saveItem("Policy", "42")
      _ = try await fixture.listReady(try fixture.statement(for: fixture.author))
      let deleteItem = VaultV1.DeleteFolderItemRequest(requestID: "\(Identifier())", itemID: item.itemID)
      let changes: [() async throws -> Void] = [
        { _ = try await fixture.saveDraft(fixture.letter()) },
        { _ = try await fixture.saveDraft(fixture.letter(), over: message) },
        { _ = try await fixture.saveToVault(fixture.letter()) },
        { _ = try await fixture.saveToVault(fixture.letter(), over: message) },
        { try await fixture.delete(message) },
        { _ = try await fixture.saveItem("New", "") },
        { _ = try await fixture.saveItem("Changed", "", over: item) },
        {
          _ = try await fixture.vault.deleteFolderItem(
            deleteItem, fixture.owner(VaultFixture.Calls.deleteFolderItem))
        },
      ]
      for change in changes {
        let error = try await refusal(change)
        #expect((error.code, error.reason) == (.failedPrecondition, "ACCOUNT_CLOSED"))
      }
      #expect(try await fixture.get(message) == message)
      #expect(try await fixture.count("folder_items") == 1)
      _ = try await fixture.saveToVault(fixture.letter(), by: Identifier())
    }
  }

  @Test("VA-22 PassingConfirmed freezes the account too, and a repeat is harmless")
  func frozenByEvent() async throws {
    try await VaultFixture.with { fixture in
      var subscription = try fixture.runtime.subscription(to: "confirmation")
      subscription.on(
        ConfirmationV1.PassingConfirmed.self, VaultEvents(fixture.runtime.dataKeys).passingConfirmed)
      _ = try await subscription.position()
      let payload = ConfirmationV1.PassingConfirmed(accountID: "\(fixture.author)").serialized()
      for position in Int64(1)...2 {
        try await subscription.apply(
          .init(position: position, type: ConfirmationV1.PassingConfirmed.fullName, payload: payload),
          after: position - 1)
      }
      #expect(try await refusal { try await fixture.saveDraft(fixture.letter()) }.reason == "ACCOUNT_CLOSED")
    }
  }

  @Test("VA-22 a save that meets a freeze under way waits for its end, and is refused")
  func crossing() async throws {
    try await VaultFixture.with { fixture in
      _ = try await fixture.saveDraft(fixture.letter())
      let save = try await fixture.runtime.database.transaction { transaction in
        try await transaction.execute("UPDATE accounts SET freeze_time = now()")
        let save = Task { try await refusal { try await fixture.saveDraft(fixture.letter()) } }
        while try await fixture.runtime.database.query(
          """
          SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
          UNION ALL SELECT 1 FROM messages OFFSET 1
          """
        ).isEmpty {
          await Task.yield()
        }
        return save
      }
      let error = try await save.value
      #expect(error.reason == "ACCOUNT_CLOSED")
      #expect(try await fixture.count("messages") == 1)
    }
  }

  @Test("VA-22 saves that cross the freeze are either listed or refused, never lost in between")
  func race() async throws {
    try await VaultFixture.with { fixture in
      let statement = try fixture.statement(for: fixture.author)
      let (saved, listed) = try await withThrowingTaskGroup(of: (saved: String?, listed: [String]?).self) { group in
        for number in 0..<24 {
          group.addTask {
            if number == 12 {
              return (nil, try await fixture.listReady(statement).messages.map(\.messageID))
            }
            do {
              return (try await fixture.saveToVault(fixture.letter()).messageID, nil)
            } catch let error as ServiceError where error.reason == "ACCOUNT_CLOSED" {
              return (nil, nil)
            }
          }
        }
        var saved: Set<String> = []
        var listed: Set<String> = []
        for try await result in group {
          if let id = result.saved { saved.insert(id) }
          if let ids = result.listed { listed = Set(ids) }
        }
        return (saved, listed)
      }
      #expect(saved == listed)
      #expect(Set(try await fixture.listReady(statement).messages.map(\.messageID)) == listed)
    }
  }
}
