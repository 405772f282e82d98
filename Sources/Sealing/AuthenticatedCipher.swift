private import CCrypto

/// 32 key bytes that are wiped when the last holder lets go.
///
/// Safety: the bytes are written in `init` only and freed in `deinit` only; every other use reads them, so sharing
/// between threads is sound.
final class KeyMaterial: @unchecked Sendable {
  static let byteCount = 32
  private let storage: UnsafeMutableRawPointer

  /// Takes exactly 32 bytes.
  init(_ bytes: [UInt8]) {
    precondition(bytes.count == KeyMaterial.byteCount)
    storage = .allocate(byteCount: KeyMaterial.byteCount, alignment: 16)
    storage.copyMemory(from: bytes, byteCount: KeyMaterial.byteCount)
  }

  deinit {
    OPENSSL_cleanse(storage, KeyMaterial.byteCount)
    storage.deallocate()
  }

  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) throws -> Result) rethrows -> Result {
    try body(UnsafePointer(storage.assumingMemoryBound(to: UInt8.self)))
  }
}

/// AES-256-GCM (NIST SP 800-38D) with a random 96-bit nonce: `nonce ‖ ciphertext ‖ 16-byte tag`. One key is good for
/// 2^32 messages.
enum AuthenticatedCipher {
  static let nonceBytes = 12
  static let tagBytes = 16
  static let overhead = nonceBytes + tagBytes
  /// What one call seals at most, 1 GiB: far below the 64 GiB of the standard and within the library's `int`.
  static let plainBytesMax = 1 << 30

  /// Safety: fetched once, never freed, and the library only counts references on it.
  private nonisolated(unsafe) static let algorithm = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)

  /// Appends the sealed bytes to `output`.
  static func seal(
    _ plain: [UInt8], key: KeyMaterial, associated: [UInt8], to output: inout [UInt8]
  ) throws(SealingError) {
    guard plain.count <= plainBytesMax else { throw .tooLong }
    guard let context = EVP_CIPHER_CTX_new() else { throw .failed }
    defer { EVP_CIPHER_CTX_free(context) }
    let nonce = randomBytes(nonceBytes)
    let cipher = [UInt8](unsafeUninitializedCapacity: plain.count + tagBytes) { buffer, filled in
      var count: Int32 = 0
      let tag = buffer.baseAddress! + plain.count
      let done =
        key.withBytes { EVP_EncryptInit_ex(context, algorithm, nil, $0, nonce) } == 1
        && EVP_EncryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
        && EVP_EncryptUpdate(context, buffer.baseAddress, &count, plain, Int32(plain.count)) == 1
        && EVP_EncryptFinal_ex(context, tag, &count) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), tag) == 1
      filled = done ? plain.count + tagBytes : 0
    }
    guard !cipher.isEmpty else { throw .failed }
    output.reserveCapacity(output.count + nonceBytes + cipher.count)
    output.append(contentsOf: nonce)
    output.append(contentsOf: cipher)
  }

  /// Opens what `seal` appended; `.notAuthentic` when anything differs.
  static func open(_ sealed: ArraySlice<UInt8>, key: KeyMaterial, associated: [UInt8]) throws(SealingError) -> [UInt8] {
    guard sealed.count >= overhead, sealed.count <= plainBytesMax + overhead else { throw .malformed }
    guard let context = EVP_CIPHER_CTX_new() else { throw .failed }
    defer { EVP_CIPHER_CTX_free(context) }
    let length = sealed.count - overhead
    var authentic = false
    let plain = sealed.withUnsafeBufferPointer { input in
      // One byte more than needed, so that an empty plaintext has an address too.
      [UInt8](unsafeUninitializedCapacity: length + 1) { buffer, filled in
        var count: Int32 = 0
        let body = input.baseAddress! + nonceBytes
        let tag = UnsafeMutableRawPointer(mutating: body + length)
        authentic =
          key.withBytes { EVP_DecryptInit_ex(context, algorithm, nil, $0, input.baseAddress) } == 1
          && EVP_DecryptUpdate(context, nil, &count, associated, Int32(associated.count)) == 1
          && EVP_DecryptUpdate(context, buffer.baseAddress, &count, body, Int32(length)) == 1
          && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), tag) == 1
          && EVP_DecryptFinal_ex(context, buffer.baseAddress! + length, &count) == 1
        if !authentic { OPENSSL_cleanse(buffer.baseAddress, length) }
        filled = authentic ? length : 0
      }
    }
    guard authentic else { throw .notAuthentic }
    return plain
  }
}

/// Associated data: each part behind its length in four bytes, so that no two lists of parts look alike.
struct AssociatedData {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ part: some Collection<UInt8>) {
    appendNumber(UInt64(part.count), bytes: 4)
    bytes.append(contentsOf: part)
  }

  mutating func append(_ number: UInt64) {
    appendNumber(8, bytes: 4)
    appendNumber(number, bytes: 8)
  }

  private mutating func appendNumber(_ number: UInt64, bytes count: UInt64) {
    for shift in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (shift * 8))) }
  }
}
