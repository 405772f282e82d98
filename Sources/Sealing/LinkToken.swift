package import Primitives

/// The unguessable part of a mailed link: 256 random bits. Only its hash is stored (OP-11).
package struct LinkToken: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  private static let byteCount = 32
  private static let textLength = 43

  private let bytes: [UInt8]

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  package static func random() -> LinkToken {
    LinkToken(bytes: randomBytes(byteCount))
  }

  /// Reads the 43 characters of `text`; nil for any other form, so that a token has one spelling.
  package init?(_ text: String) {
    guard text.utf8.count == LinkToken.textLength, let bytes = Base64.decode(text), Base64.encode(bytes) == text else {
      return nil
    }
    self.bytes = bytes
  }

  /// 43 characters of URL-safe Base64, for the link itself.
  package var text: Secret<String> { Secret(Base64.encode(bytes)) }

  /// SHA-256 of the token, 32 bytes: what is stored and looked up.
  package var hash: [UInt8] { Digest.sha256(bytes) }

  package var description: String { "[redacted]" }
  package var debugDescription: String { "[redacted]" }
  package var customMirror: Mirror { Mirror(reflecting: "[redacted]") }
}
