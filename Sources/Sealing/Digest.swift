private import CCrypto

/// SHA-256 (FIPS 180-4) and the code made from it.
package enum Digest {
  /// 32 bytes.
  package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: 32)
    precondition(EVP_Digest(bytes, bytes.count, &output, nil, EVP_sha256(), nil) == 1, "SHA-256 is always there")
    return output
  }

  /// 32 bytes (RFC 2104); the key may have any length.
  package static func hmacSHA256(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: 32)
    // A nil key would mean "the key of before", and an empty array may have no address.
    let key = key.isEmpty ? [0] : key
    let made = HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &output, nil)
    precondition(made != nil, "HMAC-SHA-256 is always there")
    return output
  }
}

/// Bytes from the library's generator, fit for keys.
package func randomBytes(_ count: Int) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    precondition(count == 0 || RAND_bytes(buffer.baseAddress, Int32(count)) == 1, "no randomness, no service")
    filled = count
  }
}

/// Whether two byte strings are equal, in a time that depends on their lengths only.
package func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
}
