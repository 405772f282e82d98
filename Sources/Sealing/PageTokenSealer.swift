package import Primitives

/// Makes and reads `page_token`: where a list goes on, sealed, and good only for the caller, the call and the other
/// arguments it was made for.
package struct PageTokenSealer: Sendable {
  private static let formVersion: UInt8 = 1
  /// A token is never longer than this many characters.
  package static let textLengthMax = 2048

  private let key: KeyMaterial

  /// Takes a key of 32 bytes, the same in every instance of a service.
  package init(key: Secret<[UInt8]>) throws(SealingError) {
    guard key.reveal().count == KeyMaterial.byteCount else { throw .badKey("a page token key has 32 bytes") }
    self.key = KeyMaterial(key.reveal())
  }

  /// `cursor` holds at most 1 KiB; `method` is the call's path, `arguments` the request's other fields in any fixed
  /// form (such as the serialized request without its paging fields).
  package func seal(
    _ cursor: [UInt8], caller: String, method: String, arguments: [UInt8]
  ) throws(SealingError) -> String {
    guard cursor.count <= 1024 else { throw .tooLong }
    var output: [UInt8] = [PageTokenSealer.formVersion]
    let associated = PageTokenSealer.associatedData(caller, method, arguments)
    try AuthenticatedCipher.seal(cursor, key: key, associated: associated, to: &output)
    return Base64.encode(output)
  }

  /// The cursor; INVALID_ARGUMENT naming `page_token` for a token that was changed or made for something else.
  package func open(
    _ token: String, caller: String, method: String, arguments: [UInt8]
  ) throws(ServiceError) -> [UInt8] {
    let associated = PageTokenSealer.associatedData(caller, method, arguments)
    guard token.utf8.count <= PageTokenSealer.textLengthMax, let sealed = Base64.decode(token),
      sealed.first == PageTokenSealer.formVersion,
      let cursor = try? AuthenticatedCipher.open(sealed.dropFirst(), key: key, associated: associated)
    else {
      throw ServiceError.invalid("page_token", "is not a token that this list gave; start from the first page")
    }
    return cursor
  }

  private static func associatedData(_ caller: String, _ method: String, _ arguments: [UInt8]) -> [UInt8] {
    var data = AssociatedData()
    data.append([formVersion])
    data.append("page token".utf8)
    data.append(caller.utf8)
    data.append(method.utf8)
    data.append(Digest.sha256(arguments))
    return Digest.sha256(data.bytes)
  }
}
