import Postgres
import Primitives
import Sealing
import ServiceKit
import TestKit
import Testing

@Suite struct DataKeysTests {
  private static func binding(_ owner: Identifier) -> Binding {
    Binding(table: "t", column: "c", row: Identifier(high: 1, low: 1), owner: owner)
  }

  @Test("3.10 an owner has one key, also when it is first needed in many transactions at once")
  func oneKey() async throws {
    try await TestRuntime.with(name: "kit", migrations: []) { runtime in
      let owner = Identifier()
      let sealed = try await withThrowingTaskGroup(of: [UInt8].self) { group in
        for _ in 0..<8 {
          group.addTask {
            let keys = DataKeys(keys: runtime.config.keys)
            return try await runtime.database.transaction { transaction in
              try await keys.key(for: owner, in: transaction).seal([1, 2, 3], Self.binding(owner))
            }
          }
        }
        return try await group.reduce(into: [[UInt8]]()) { $0.append($1) }
      }
      let key = try #require(try await runtime.dataKeys.existingKey(for: owner, in: runtime.database))
      for text in sealed { #expect(try key.open(text, Self.binding(owner)) == [1, 2, 3]) }
      let other = Identifier()
      #expect(try await runtime.dataKeys.existingKey(for: other, in: runtime.database) == nil)
      let otherKey = try await runtime.database.transaction { try await runtime.dataKeys.key(for: other, in: $0) }
      #expect(throws: SealingError.self) { try otherKey.open(sealed[0], Self.binding(owner)) }
    }
  }

  @Test("3.10 a key whose transaction is undone seals nothing afterwards")
  func undone() async throws {
    try await TestRuntime.with(name: "kit", migrations: []) { runtime in
      let owner = Identifier()
      let lost = try await refusalKey(runtime, owner)
      let key = try await runtime.database.transaction { try await runtime.dataKeys.key(for: owner, in: $0) }
      let sealed = try key.seal([1], Self.binding(owner))
      #expect(throws: SealingError.self) { try lost.open(sealed, Self.binding(owner)) }
      let fresh = DataKeys(keys: runtime.config.keys)
      let stored = try #require(try await fresh.existingKey(for: owner, in: runtime.database))
      #expect(try stored.open(sealed, Self.binding(owner)) == [1])
    }
  }

  /// The key of a transaction that was rolled back.
  private func refusalKey(_ runtime: ServiceRuntime, _ owner: Identifier) async throws -> DataKey {
    struct Undone: Error { let key: DataKey }
    do {
      let _: Void = try await runtime.database.transaction { transaction in
        throw Undone(key: try await runtime.dataKeys.key(for: owner, in: transaction))
      }
    } catch let undone as Undone {
      return undone.key
    }
    throw ServiceError.notFound("key")
  }

  @Test("3.10 without its row an owner's content cannot be opened; a row is of no use to another owner")
  func erased() async throws {
    try await TestRuntime.with(name: "kit", migrations: []) { runtime in
      let (owner, thief) = (Identifier(), Identifier())
      _ = try await runtime.database.transaction { try await runtime.dataKeys.key(for: owner, in: $0) }
      try await runtime.database.execute(
        "INSERT INTO data_keys (owner_id, wrapped) SELECT \(thief), wrapped FROM data_keys WHERE owner_id = \(owner)")
      let fresh = DataKeys(keys: runtime.config.keys)
      await #expect(throws: SealingError.self) {
        try await fresh.existingKey(for: thief, in: runtime.database) != nil
      }
      try await runtime.database.execute("DELETE FROM data_keys WHERE owner_id = \(owner)")
      #expect(try await fresh.existingKey(for: owner, in: runtime.database) == nil)
    }
  }

  @Test("ServiceKit the service's own key is made at the first start and kept at the next")
  func prepare() async throws {
    try await TestRuntime.with(name: "kit", migrations: []) { runtime in
      let count: Query = "SELECT count(*) FROM data_keys"
      #expect(try await runtime.database.query(count)[0].decode(Int.self) == 1)
      _ = try await DataKeys(keys: runtime.config.keys).serviceKey(in: runtime.database)
      #expect(try await runtime.database.query(count)[0].decode(Int.self) == 1)
    }
  }
}
