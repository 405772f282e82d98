extension DataKey {
  /// A keyed digest, 32 bytes: equal for equal messages, and says nothing about them to anyone without the key. Its key
  /// is derived, so that it shares none with sealing.
  package func authenticate(_ message: [UInt8]) -> [UInt8] {
    let root = material.withBytes { Array(UnsafeBufferPointer(start: $0, count: KeyMaterial.byteCount)) }
    let derived = Digest.hmacSHA256(Array("afterthoughts authenticate v1".utf8), key: root)
    return Digest.hmacSHA256(message, key: derived)
  }
}
