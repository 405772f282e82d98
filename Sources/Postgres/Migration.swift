/// One forward-only change of a service's schema: a file beside the service. Never edited once applied anywhere.
package struct Migration: Sendable {
  /// The file's name without `.sql`: `v0001_create_messages`.
  package let name: String
  /// One or more statements; they run in one transaction, so without BEGIN and COMMIT of their own.
  package let sql: [UInt8]

  package init(_ name: String, _ sql: [UInt8]) {
    self.name = name
    self.sql = sql
  }

  /// `v` (a service's own) or `k` (what every service has), four digits, `_`, then lower-case letters, digits and
  /// underscores. Each letter is a sequence of its own.
  var isWellNamed: Bool {
    let bytes = Array(name.utf8)
    guard bytes.count > 6, bytes.count <= 100, "kv".utf8.contains(bytes[0]), bytes[5] == UInt8(ascii: "_") else {
      return false
    }
    let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
    return bytes[1..<5].allSatisfy(isDigit)
      && bytes[6...].allSatisfy {
        isDigit($0) || $0 == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
      }
  }
}

/// Why migrations were refused or failed.
package enum MigrationError: Error, Sendable, CustomStringConvertible {
  /// Not like `v0001_create_messages`, out of order, or twice in the list.
  case badList(name: String)
  /// The file is not what was applied under this name.
  case edited(name: String)
  /// Applied to the database, but neither in the list nor newer than all of it.
  case unknown(name: String)
  /// Not applied although a later one is.
  case outOfOrder(name: String)
  /// The statements failed; nothing of this file remains.
  case failed(name: String, PostgresError)

  package var description: String {
    switch self {
    case .badList(let name): "migration \(name): its name is malformed, repeated or out of order"
    case .edited(let name): "migration \(name): the file differs from what was applied; write a new one instead"
    case .unknown(let name): "migration \(name): was applied but is not known to this program"
    case .outOfOrder(let name): "migration \(name): a later one has been applied already; give it a new number"
    case .failed(let name, let error): "migration \(name): \(error)"
    }
  }
}

/// What to do about a list of migrations, given what the database remembers. Pure.
struct MigrationPlan {
  let pending: [Migration]

  /// `applied` and `checksums` map names to checksums.
  init(_ all: [Migration], checksums: [String: String], applied: [String: String]) throws(MigrationError) {
    var previous: String?
    for migration in all {
      guard migration.isWellNamed,
        previous.map({ $0 < migration.name && $0.prefix(5) != migration.name.prefix(5) }) ?? true
      else { throw .badList(name: migration.name) }
      previous = migration.name
    }
    let known = Set(all.map(\.name))
    // Newer ones belong to the next release, on whose schema this one must run.
    for name in applied.keys.sorted() where !known.contains(name) {
      guard let last = all.last(where: { $0.name.first == name.first })?.name, name > last else {
        throw .unknown(name: name)
      }
    }
    for migration in all {
      guard let checksum = applied[migration.name] else { continue }
      guard checksum == checksums[migration.name] else { throw .edited(name: migration.name) }
    }
    pending = all.filter { applied[$0.name] == nil }
    for migration in pending {
      let isLate = applied.keys.contains { $0.first == migration.name.first && $0 > migration.name }
      if isLate { throw .outOfOrder(name: migration.name) }
    }
  }
}
