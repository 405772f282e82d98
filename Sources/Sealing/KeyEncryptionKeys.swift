package import Primitives

/// The keys that wrap data keys. The first one wraps; all of them unwrap, so that a key is changed by putting a new
/// line in front, wrapping every data key again, and taking the old line away.
package struct KeyEncryptionKeys: Sendable {
  private static let formVersion: UInt8 = 1
  private static let idBytesMax = 64

  private struct Entry: Sendable {
    let id: String
    let material: KeyMaterial
  }

  private let entries: [Entry]

  /// Reads lines `id base64(32 bytes)`, the current key first. Empty lines and lines that begin with `#` are skipped.
  /// An id has 1 to 64 characters of `A-Z a-z 0-9 . _ -` and stands once.
  package init(parsing text: Secret<String>) throws(SealingError) {
    var entries: [Entry] = []
    for line in text.reveal().split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
      let fields = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
      if fields.isEmpty { continue }
      let number = entries.count + 1
      guard fields.count == 2 else { throw .badKey("key \(number) is not `id base64`") }
      let id = String(fields[0])
      guard id.utf8.count <= KeyEncryptionKeys.idBytesMax, id.utf8.allSatisfy(KeyEncryptionKeys.isAllowedInID) else {
        throw .badKey("key \(number) has an unusable id")
      }
      guard !entries.contains(where: { $0.id == id }) else { throw .badKey("key \(number) repeats an id") }
      guard let bytes = Base64.decode(fields[1]), bytes.count == KeyMaterial.byteCount else {
        throw .badKey("key \(number) is not 32 bytes in Base64")
      }
      entries.append(Entry(id: id, material: KeyMaterial(bytes)))
    }
    guard !entries.isEmpty else { throw .badKey("there is none") }
    self.entries = entries
  }

  /// The id of the key that wraps.
  package var currentID: String { entries[0].id }

  /// `1 ‖ length of id ‖ id ‖ nonce ‖ ciphertext ‖ tag`, bound to the key's id and to the owner.
  package func wrap(_ key: DataKey, owner: Identifier) throws(SealingError) -> [UInt8] {
    let entry = entries[0]
    var output: [UInt8] = [KeyEncryptionKeys.formVersion, UInt8(entry.id.utf8.count)]
    output.append(contentsOf: entry.id.utf8)
    let plain = key.material.withBytes { Array(UnsafeBufferPointer(start: $0, count: KeyMaterial.byteCount)) }
    try AuthenticatedCipher.seal(
      plain, key: entry.material, associated: KeyEncryptionKeys.associatedData(entry.id, owner), to: &output)
    return output
  }

  /// Throws `.unknownKey` when the wrapping key is not configured, `.notAuthentic` for another owner's.
  package func unwrap(_ wrapped: [UInt8], owner: Identifier) throws(SealingError) -> DataKey {
    let id = try KeyEncryptionKeys.keyID(of: wrapped)
    guard let entry = entries.first(where: { $0.id == id }) else { throw .unknownKey }
    let plain = try AuthenticatedCipher.open(
      wrapped.dropFirst(2 + id.utf8.count), key: entry.material,
      associated: KeyEncryptionKeys.associatedData(id, owner))
    guard plain.count == KeyMaterial.byteCount else { throw .malformed }
    return DataKey(material: KeyMaterial(plain))
  }

  /// The same data key under the current wrapping key; nil when it is already.
  package func rewrap(_ wrapped: [UInt8], owner: Identifier) throws(SealingError) -> [UInt8]? {
    guard try KeyEncryptionKeys.keyID(of: wrapped) != currentID else { return nil }
    return try wrap(unwrap(wrapped, owner: owner), owner: owner)
  }

  /// The id of the key that wrapped this, unverified.
  package static func keyID(of wrapped: [UInt8]) throws(SealingError) -> String {
    guard wrapped.count > 2, wrapped[0] == formVersion else { throw .malformed }
    let end = 2 + Int(wrapped[1])
    guard end > 2, wrapped.count > end, wrapped[2..<end].allSatisfy(isAllowedInID) else { throw .malformed }
    return String(decoding: wrapped[2..<end], as: UTF8.self)
  }

  private static func associatedData(_ id: String, _ owner: Identifier) -> [UInt8] {
    var data = AssociatedData()
    data.append([formVersion])
    data.append("data key".utf8)
    data.append(id.utf8)
    data.append(owner.bytes)
    return data.bytes
  }

  private static func isAllowedInID(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
