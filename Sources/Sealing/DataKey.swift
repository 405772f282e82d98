package import Primitives

/// The place a sealed value belongs to. It is authenticated with the value, so that a ciphertext copied to another
/// row, column, table or owner does not open there.
package struct Binding: Sendable, Hashable {
  package let table: String
  package let column: String
  package let row: Identifier
  package let owner: Identifier
  /// The piece of a value that is sealed in pieces, counted from 0. The number of pieces is the row's to know: a
  /// missing last piece is not noticed here.
  package let part: UInt64
  /// The version of the row's form; a writer raises it when the meaning of the plaintext changes.
  package let version: UInt64

  package init(
    table: String, column: String, row: Identifier, owner: Identifier, part: UInt64 = 0, version: UInt64 = 1
  ) {
    self.table = table
    self.column = column
    self.row = row
    self.owner = owner
    self.part = part
    self.version = version
  }

  fileprivate var associatedData: [UInt8] {
    var data = AssociatedData()
    data.append([DataKey.formVersion])
    data.append(table.utf8)
    data.append(column.utf8)
    data.append(row.bytes)
    data.append(owner.bytes)
    data.append(part)
    data.append(version)
    return data.bytes
  }
}

/// A key that seals the content of one owner: AES-256-GCM under a random nonce. It is stored only wrapped (see
/// `KeyEncryptionKeys`), wiped from memory when released, and never printed.
package struct DataKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  static let formVersion: UInt8 = 1
  /// By how many bytes a sealed value is longer than its plaintext.
  package static let overhead = 1 + AuthenticatedCipher.overhead

  let material: KeyMaterial

  init(material: KeyMaterial) {
    self.material = material
  }

  package static func random() -> DataKey {
    DataKey(material: KeyMaterial(randomBytes(KeyMaterial.byteCount)))
  }

  /// `1 ‖ nonce ‖ ciphertext ‖ tag`. Takes at most 1 GiB, else `SealingError.tooLong`.
  package func seal(_ plain: [UInt8], _ binding: Binding) throws(SealingError) -> [UInt8] {
    var output: [UInt8] = [DataKey.formVersion]
    try AuthenticatedCipher.seal(plain, key: material, associated: binding.associatedData, to: &output)
    return output
  }

  /// The plaintext; throws unless the bytes were sealed by this key for this binding.
  package func open(_ sealed: [UInt8], _ binding: Binding) throws(SealingError) -> [UInt8] {
    guard sealed.first == DataKey.formVersion else { throw .malformed }
    return try AuthenticatedCipher.open(sealed.dropFirst(), key: material, associated: binding.associatedData)
  }

  package var description: String { "[redacted]" }
  package var debugDescription: String { "[redacted]" }
  package var customMirror: Mirror { Mirror(reflecting: "[redacted]") }
}
