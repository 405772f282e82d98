import API
import Postgres
import Primitives
import Protobuf
import RPC
import ServiceKit
import TestKit
import Testing
import vault

@Suite struct OwnershipTests {
  typealias Calls = VaultFixture.Calls

  /// A call upon an object by its id.
  struct Attempt: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let call: @Sendable (VaultFixture, VaultV1.Message, VaultV1.FolderItem, Identifier) async throws -> Void

    static let all = [
      Attempt(testDescription: "GetMessage") { try await _ = $0.get($1, by: $3) },
      Attempt(testDescription: "SaveDraft") { try await _ = $0.saveDraft($0.letter(), over: $1, by: $3) },
      Attempt(testDescription: "SaveToVault") { try await _ = $0.saveToVault($0.letter(), over: $1, by: $3) },
      Attempt(testDescription: "DeleteMessage") { try await $0.delete($1, by: $3) },
      Attempt(testDescription: "SaveFolderItem") { try await _ = $0.saveItem("T", "t", over: $2, by: $3) },
      Attempt(testDescription: "GetFolderItem") {
        _ = try await $0.vault.getFolderItem(.init(itemID: $2.itemID), $0.owner(Calls.getFolderItem, $3))
      },
      Attempt(testDescription: "DeleteFolderItem") {
        _ = try await $0.vault.deleteFolderItem(
          .init(requestID: "\(Identifier())", itemID: $2.itemID), $0.owner(Calls.deleteFolderItem, $3))
      },
    ]
  }

  @Test("VA-6 another author's object answers as one that does not exist, and stays as it is", arguments: Attempt.all)
  func foreign(_ attempt: Attempt) async throws {
    try await VaultFixture.with { fixture in
      let message = try await fixture.saveToVault(fixture.letter())
      let item = try await fixture.saveItem("Policy", "42")
      let stranger = Identifier()
      // The stranger has a vault of their own.
      _ = try await fixture.saveDraft(fixture.letter(), by: stranger)
      let foreign = try await refusal { try await attempt.call(fixture, message, item, stranger) }
      var missingMessage = message
      var missingItem = item
      missingMessage.messageID = "\(Identifier())"
      missingItem.itemID = "\(Identifier())"
      let missing = try await refusal { try await attempt.call(fixture, missingMessage, missingItem, stranger) }
      #expect((foreign.code, foreign.reason, foreign.message) == (missing.code, missing.reason, missing.message))
      #expect(foreign.code == .notFound)
      #expect(try await fixture.get(message) == message)
      #expect(try await fixture.count("folder_items") == 1)
    }
  }

  @Test("VA-6 an id that is no UUID is INVALID_ARGUMENT naming the field", arguments: Attempt.all)
  func malformed(_ attempt: Attempt) async throws {
    try await VaultFixture.with { fixture in
      let error = try await refusal {
        try await attempt.call(
          fixture, .init(messageID: "x", revision: 1), .init(itemID: "x", revision: 1), fixture.author)
      }
      #expect(error.violations.map(\.field).allSatisfy { ["message_id", "item_id"].contains($0) })
      #expect(error.violations.count == 1)
    }
  }

  @Test("VA-6 every method has its callers: the owner, or delivery for what is released")
  func access() {
    for method in Calls.descriptor.methods { #expect(VaultParts.access[method] == .owner) }
    for method in VaultFixture.ReleaseCalls.descriptor.methods {
      #expect(VaultParts.access[method] == .services(["delivery"]))
    }
  }

  @Test("VA-6 without a signed-in person every call is UNAUTHENTICATED")
  func anonymous() async throws {
    try await VaultFixture.with { fixture in
      let vault = fixture.vault
      let nobody = CallContext.anonymous(Calls.saveDraft)
      let calls: [() async throws -> Void] = [
        { _ = try await vault.saveDraft(.init(), nobody) }, { _ = try await vault.saveToVault(.init(), nobody) },
        { _ = try await vault.getMessage(.init(), nobody) }, { _ = try await vault.listMessages(.init(), nobody) },
        { _ = try await vault.getSummary(.init(), nobody) }, { _ = try await vault.deleteMessage(.init(), nobody) },
        { _ = try await vault.saveFolderItem(.init(), nobody) }, { _ = try await vault.getFolderItem(.init(), nobody) },
        { _ = try await vault.listFolderItems(.init(), nobody) },
        { _ = try await vault.deleteFolderItem(.init(), nobody) },
      ]
      for call in calls {
        let error = try await refusal(call)
        #expect(error.code == .unauthenticated)
      }
    }
  }

  @Test("VA-1 a repeated request gives the same answer and one message; with another body it is refused")
  func repeats() async throws {
    try await VaultFixture.with { fixture in
      let id = Identifier()
      let first = try await fixture.saveToVault(fixture.letter(), requestID: id)
      // The answer does not depend on what has become of the neighbours since.
      fixture.standIns.set { $0.hasAdministrator = false }
      #expect(try await fixture.saveToVault(fixture.letter(), requestID: id) == first)
      let error = try await refusal { try await fixture.saveToVault(fixture.letter { $0.title = "B" }, requestID: id) }
      #expect((error.code, error.reason) == (.invalidArgument, "REQUEST_ID_REUSED"))

      let draft = try await fixture.saveDraft(fixture.letter(), requestID: id)
      #expect(try await fixture.saveDraft(fixture.letter(), requestID: id) == draft)
      #expect(draft.messageID != first.messageID)

      let item = try await fixture.saveItem(" Title ", "text", requestID: id)
      #expect(try await fixture.saveItem(" Title ", "text", requestID: id) == item)
      #expect((item.title, item.text) == ("Title", "text"))
      #expect(try await refusal { try await fixture.saveItem("T", "", requestID: id) }.reason == "REQUEST_ID_REUSED")

      // Another account's requests are its own.
      _ = try await fixture.saveDraft(fixture.letter(), requestID: id, by: Identifier())
      #expect(try await fixture.count("messages") == 3)
      #expect(try await fixture.count("folder_items") == 1)
    }
  }

  @Test("VA-1 a request without an id, or with a revision of nothing, is refused")
  func badRequests() async throws {
    try await VaultFixture.with { fixture in
      let error = try await refusal {
        try await fixture.vault.saveDraft(
          .init(requestID: "1", content: fixture.letter()), fixture.owner(Calls.saveDraft))
      }
      #expect(error.violations.map(\.field) == ["request_id"])
      let revision = try await refusal { try await fixture.saveDraft(fixture.letter(), over: .init(revision: 1)) }
      #expect(revision.violations.map(\.field) == ["revision"])
      #expect(try await fixture.count("messages") == 0)
    }
  }
}
