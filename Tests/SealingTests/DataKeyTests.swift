import Primitives
import Sealing
import Testing

struct DataKeyTests {
  private let key = DataKey.random()
  private let row = Identifier()
  private let owner = Identifier()

  private func binding(
    table: String = "messages", column: String = "body", row: Identifier? = nil, owner: Identifier? = nil,
    part: UInt64 = 0, version: UInt64 = 1
  ) -> Binding {
    Binding(
      table: table, column: column, row: row ?? self.row, owner: owner ?? self.owner, part: part, version: version)
  }

  @Test("Sealing opens in its own place what it sealed, of every length", arguments: [0, 1, 15, 16, 17, 1000, 1 << 20])
  func roundTrip(length: Int) throws {
    let plain = randomBytes(length)
    let sealed = try key.seal(plain, binding())
    #expect(sealed.count == length + DataKey.overhead)
    #expect(sealed[0] == 1)
    #expect(try key.open(sealed, binding()) == plain)
  }

  @Test("Sealing never makes the same bytes twice")
  func freshNonce() throws {
    let all = try (0..<200).map { _ in try key.seal([1, 2, 3], binding()) }
    #expect(Set(all.map { $0[1..<13] }).count == all.count)
  }

  @Test("Sealing refuses a ciphertext moved to another table, column, row, owner, part or version")
  func moved() throws {
    let sealed = try key.seal(Array("dear".utf8), binding())
    let elsewhere = [
      binding(table: "folder"), binding(column: "title"), binding(row: Identifier()), binding(owner: Identifier()),
      binding(part: 1), binding(version: 2), binding(row: owner, owner: row),
      binding(table: "message", column: "sbody"), binding(table: "messagesb", column: "ody"),
    ]
    for place in elsewhere {
      #expect(throws: SealingError.notAuthentic) { try key.open(sealed, place) }
    }
  }

  @Test("Sealing refuses another key")
  func otherKey() throws {
    let sealed = try key.seal([1], binding())
    #expect(throws: SealingError.notAuthentic) { try DataKey.random().open(sealed, binding()) }
  }

  @Test("Sealing refuses a ciphertext with any one bit changed")
  func flippedBits() throws {
    let sealed = try key.seal(Array("a letter".utf8), binding())
    for bit in 0..<sealed.count * 8 {
      var changed = sealed
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: SealingError.self, "bit \(bit)") { try key.open(changed, binding()) }
    }
  }

  @Test("Sealing refuses a ciphertext cut to any length, and a longer one")
  func truncated() throws {
    let sealed = try key.seal(Array("a letter".utf8), binding())
    for length in 0..<sealed.count {
      #expect(throws: SealingError.self, "length \(length)") { try key.open(Array(sealed[..<length]), binding()) }
    }
    #expect(throws: SealingError.notAuthentic) { try key.open(sealed + [0], binding()) }
  }

  @Test("Sealing never prints a key")
  func printing() {
    var dumped = ""
    dump(key, to: &dumped)
    for text in ["\(key)", String(reflecting: key), dumped] { #expect(text.contains("[redacted]")) }
    #expect(!dumped.contains("material"))
  }
}

struct KeyEncryptionKeysTests {
  private let owner = Identifier()
  private static let old = "2025-01 \(Base64.encode(randomBytes(32), alphabet: .standard, padding: true))"
  private static let new = "2026-01 \(Base64.encode(randomBytes(32), alphabet: .standard, padding: true))"

  private func keys(_ lines: String...) throws -> KeyEncryptionKeys {
    try KeyEncryptionKeys(parsing: Secret(lines.joined(separator: "\n")))
  }

  private func place() -> Binding { Binding(table: "t", column: "c", row: owner, owner: owner) }

  @Test("Sealing unwraps for its owner only, and any one changed bit is refused")
  func ownerAndBits() throws {
    let keys = try keys(Self.old)
    let wrapped = try keys.wrap(DataKey.random(), owner: owner)
    #expect(throws: SealingError.notAuthentic) { try keys.unwrap(wrapped, owner: Identifier()) }
    for bit in 0..<wrapped.count * 8 {
      var changed = wrapped
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: SealingError.self, "bit \(bit)") { try keys.unwrap(changed, owner: owner) }
    }
    for length in 0..<wrapped.count {
      #expect(throws: SealingError.self) { try keys.unwrap(Array(wrapped[..<length]), owner: owner) }
    }
  }

  @Test("Sealing rotates the wrapping key: both read meanwhile, then the old one is not needed")
  func rotation() throws {
    let dataKey = DataKey.random()
    let sealed = try dataKey.seal([7], place())
    let before = try keys("# wrapping keys", "", Self.old)
    let during = try keys(Self.new, Self.old)
    let after = try keys(Self.new)

    let wrapped = try before.wrap(dataKey, owner: owner)
    #expect(try KeyEncryptionKeys.keyID(of: wrapped) == "2025-01")
    #expect(try during.unwrap(wrapped, owner: owner).open(sealed, place()) == [7])
    #expect(throws: SealingError.unknownKey) { try after.unwrap(wrapped, owner: owner) }

    let again = try #require(try during.rewrap(wrapped, owner: owner))
    #expect(try KeyEncryptionKeys.keyID(of: again) == "2026-01")
    #expect(try during.rewrap(again, owner: owner) == nil)
    #expect(try after.unwrap(again, owner: owner).open(sealed, place()) == [7])
  }

  @Test("Sealing refuses a wrapped key relabelled with another key's id")
  func relabelled() throws {
    // The same bytes under two ids, so that only the id tells them apart.
    let both = try keys("2026-01 " + Self.old.dropFirst(8), Self.old)
    var wrapped = try both.wrap(DataKey.random(), owner: owner)
    wrapped.replaceSubrange(2..<9, with: Array("2025-01".utf8))
    #expect(throws: SealingError.notAuthentic) { try both.unwrap(wrapped, owner: owner) }
  }

  @Test(
    "Sealing refuses unusable wrapping keys without showing them",
    arguments: ["", "# only", "id", "id !!!", "id AAAA", "bad/id \(old.dropFirst(8))", "\(old)\n\(old)", "\(old) more"])
  func unusable(text: String) {
    let error = #expect(throws: SealingError.self) { try KeyEncryptionKeys(parsing: Secret(text)) }
    #expect(!"\(error!)".contains(Self.old.dropFirst(8)))
  }
}
