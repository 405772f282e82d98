private import CCrypto
package import Primitives

/// Answers "no password" for an encrypted PEM; without it the library would ask on the terminal.
private func noPassword(
  _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { -1 }

/// An OpenSSL key, freed with its last holder.
///
/// Safety: the key is complete before the handle exists and is only read afterwards; OpenSSL allows any number of
/// threads to use one `EVP_PKEY` in contexts of their own.
private final class KeyHandle: @unchecked Sendable {
  let pointer: OpaquePointer

  /// Takes over `pointer`; throws when it is no Ed25519 key.
  init(_ pointer: OpaquePointer?) throws(SealingError) {
    guard let pointer else {
      ERR_clear_error()
      throw .badKey("it cannot be read")
    }
    guard EVP_PKEY_get_id(pointer) == EVP_PKEY_ED25519 else {
      EVP_PKEY_free(pointer)
      throw .badKey("it is no Ed25519 key")
    }
    self.pointer = pointer
  }

  deinit { EVP_PKEY_free(pointer) }

  /// Runs `body` over a memory BIO that holds `text`.
  static func reading(_ text: String, _ body: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
    let bytes = Array(text.utf8)
    guard bytes.count <= 1 << 16, let source = BIO_new_mem_buf(bytes, Int32(bytes.count)) else { return nil }
    defer { BIO_free(source) }
    return body(source)
  }

  /// What `body` writes to a memory BIO.
  static func writing(_ body: (OpaquePointer) -> Int32) -> String {
    guard let sink = BIO_new(BIO_s_mem()) else { return "" }
    defer { BIO_free(sink) }
    guard body(sink) == 1 else { return "" }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = BIO_read(sink, &bytes, Int32(bytes.count))
    return String(decoding: bytes[..<Int(max(0, count))], as: UTF8.self)
  }
}

/// An Ed25519 private key (RFC 8032).
package struct SigningKey: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  private let handle: KeyHandle
  package let verifyingKey: VerifyingKey

  private init(handle: KeyHandle) throws(SealingError) {
    self.handle = handle
    var raw = [UInt8](repeating: 0, count: 32)
    var count = raw.count
    guard EVP_PKEY_get_raw_public_key(handle.pointer, &raw, &count) == 1 else { throw .failed }
    verifyingKey = try VerifyingKey(raw: raw)
  }

  /// Reads an unencrypted PKCS #8 PEM.
  package init(pem: Secret<String>) throws(SealingError) {
    try self.init(
      handle: KeyHandle(KeyHandle.reading(pem.reveal()) { PEM_read_bio_PrivateKey($0, nil, noPassword, nil) }))
  }

  /// A new key.
  package static func random() -> SigningKey {
    let seed = randomBytes(32)
    // Any 32 bytes are a key, so this cannot fail.
    return try! SigningKey(handle: KeyHandle(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count)))
  }

  /// PKCS #8 PEM, unencrypted: for writing a new key's file.
  package var pem: Secret<String> {
    Secret(KeyHandle.writing { PEM_write_bio_PKCS8PrivateKey($0, handle.pointer, nil, nil, 0, nil, nil) })
  }

  /// 64 bytes.
  package func sign(_ message: [UInt8]) throws(SealingError) -> [UInt8] {
    guard let context = EVP_MD_CTX_new() else { throw .failed }
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: 64)
    var count = signature.count
    guard EVP_DigestSignInit(context, nil, nil, nil, handle.pointer) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1, count == signature.count
    else { throw .failed }
    return signature
  }

  package var description: String { "[redacted]" }
  package var debugDescription: String { "[redacted]" }
  package var customMirror: Mirror { Mirror(reflecting: "[redacted]") }
}

/// An Ed25519 public key.
package struct VerifyingKey: Sendable {
  private let handle: KeyHandle
  /// 32 bytes.
  package let raw: [UInt8]
  /// The first 8 bytes of SHA-256 over `raw`, in hexadecimal.
  package let keyID: String

  /// Takes exactly 32 bytes.
  package init(raw: [UInt8]) throws(SealingError) {
    guard raw.count == 32 else { throw .badKey("a raw Ed25519 key has 32 bytes") }
    try self.init(handle: KeyHandle(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, raw, raw.count)))
  }

  /// Reads a SubjectPublicKeyInfo PEM.
  package init(pem: String) throws(SealingError) {
    try self.init(handle: KeyHandle(KeyHandle.reading(pem) { PEM_read_bio_PUBKEY($0, nil, noPassword, nil) }))
  }

  private init(handle: KeyHandle) throws(SealingError) {
    var raw = [UInt8](repeating: 0, count: 32)
    var count = raw.count
    guard EVP_PKEY_get_raw_public_key(handle.pointer, &raw, &count) == 1, count == 32 else { throw .failed }
    self.handle = handle
    self.raw = raw
    keyID = Hex.encode(Digest.sha256(raw).prefix(8))
  }

  /// SubjectPublicKeyInfo PEM.
  package var pem: String { KeyHandle.writing { PEM_write_bio_PUBKEY($0, handle.pointer) } }

  /// Whether `signature` is this key's over `message`; false for a signature of a wrong length.
  package func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    guard signature.count == 64, let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    guard EVP_DigestVerifyInit(context, nil, nil, nil, handle.pointer) == 1 else { return false }
    let valid = EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    if !valid { ERR_clear_error() }
    return valid
  }
}

extension VerifyingKey: Equatable {
  package static func == (left: VerifyingKey, right: VerifyingKey) -> Bool { left.raw == right.raw }
}
