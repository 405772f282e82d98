/// Why something could not be sealed or opened. No case carries a key, a plaintext or an identifier.
package enum SealingError: Error, Equatable, CustomStringConvertible {
  /// The bytes have not the form that `seal` or `wrap` makes.
  case malformed
  /// The bytes were changed, were sealed under another key, or belong to another place.
  case notAuthentic
  /// The key-encryption key that wrapped this is not configured.
  case unknownKey
  /// Key material in the configuration cannot be used; says which rule it breaks.
  case badKey(String)
  /// The plaintext is larger than one sealed piece may be.
  case tooLong
  /// The cryptographic library refused to work.
  case failed

  package var description: String {
    switch self {
    case .malformed: "sealed bytes are malformed"
    case .notAuthentic: "sealed bytes are not authentic in this place"
    case .unknownKey: "the wrapping key is not configured"
    case .badKey(let rule): "unusable key: \(rule)"
    case .tooLong: "too long to seal in one piece"
    case .failed: "the cryptographic library failed"
    }
  }
}
