package import Postgres
package import Primitives
package import Sealing
internal import Synchronization

/// The data keys of a service's schema, one per owner, made when first needed. Erasing an owner's row makes everything
/// sealed with it unreadable.
package final class DataKeys: Sendable {
  /// Owns what belongs to the service itself.
  package static let serviceOwner = Identifier(high: 0, low: 0)

  private let keys: KeyEncryptionKeys
  private let known = Mutex<[Identifier: DataKey]>([:])
  private let knownMax = 1000

  package init(keys: KeyEncryptionKeys) {
    self.keys = keys
  }

  /// The owner's key, made if there is none yet.
  package func key(for owner: Identifier, in transaction: Transaction) async throws -> DataKey {
    if let key = known.withLock({ $0[owner] }) { return key }
    if let key = try await stored(owner, in: transaction) { return key }
    let wrapped = try keys.wrap(DataKey.random(), owner: owner)
    _ = try await transaction.execute(
      "INSERT INTO data_keys (owner_id, wrapped) VALUES (\(owner), \(wrapped)) ON CONFLICT DO NOTHING")
    guard let key = try await stored(owner, in: transaction) else {
      throw ServiceError.unavailable("The key store changed meanwhile; try again.")
    }
    // Not remembered before it is committed: a rolled-back key must not seal anything.
    return key
  }

  /// The owner's key; nil when there is none.
  package func existingKey(for owner: Identifier, in database: Database) async throws -> DataKey? {
    if let key = known.withLock({ $0[owner] }) { return key }
    let rows = try await database.query("SELECT wrapped FROM data_keys WHERE owner_id = \(owner)")
    guard let row = rows.first else { return nil }
    let key = try keys.unwrap(try row.decode([UInt8].self, at: 0), owner: owner)
    remember(owner, key)
    return key
  }

  /// The service's own key, made at the first start.
  package func serviceKey(in database: Database) async throws -> DataKey {
    let owner = DataKeys.serviceOwner
    if let key = try await existingKey(for: owner, in: database) { return key }
    try await database.transaction { _ = try await self.key(for: owner, in: $0) }
    guard let key = try await existingKey(for: owner, in: database) else {
      throw ServiceError.unavailable("The key store changed meanwhile; try again.")
    }
    return key
  }

  private func stored(_ owner: Identifier, in transaction: Transaction) async throws -> DataKey? {
    let rows = try await transaction.query("SELECT wrapped FROM data_keys WHERE owner_id = \(owner)")
    guard let row = rows.first else { return nil }
    return try keys.unwrap(try row.decode([UInt8].self, at: 0), owner: owner)
  }

  private func remember(_ owner: Identifier, _ key: DataKey) {
    known.withLock { known in
      if known.count >= knownMax { known.removeAll() }
      known[owner] = key
    }
  }
}
