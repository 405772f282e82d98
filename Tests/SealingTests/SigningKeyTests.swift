import Primitives
import Sealing
import Testing

struct SigningKeyTests {
  @Test("Sealing signs as RFC 8032 section 7.1 test 2 says")
  func knownAnswer() throws {
    let key = try VerifyingKey(
      raw: #require(Hex.decode("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")))
    let signature = try #require(
      Hex.decode(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
          + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"))
    #expect(key.isValid(signature, for: [0x72]))
    #expect(!key.isValid(signature, for: [0x73]))
    #expect(!key.isValid(Array(signature.dropLast()), for: [0x72]))
    #expect(!key.isValid([], for: [0x72]))
  }

  @Test("Sealing reads back the PEM it writes, private and public, and gives both one key id")
  func pem() throws {
    let key = SigningKey.random()
    let again = try SigningKey(pem: key.pem)
    let published = try VerifyingKey(pem: key.verifyingKey.pem)
    #expect(key.pem.reveal().hasPrefix("-----BEGIN PRIVATE KEY-----"))
    #expect(published == key.verifyingKey && published.keyID == again.verifyingKey.keyID)
    #expect(published.keyID.count == 16)
    #expect(try published.isValid(again.sign([1, 2]), for: [1, 2]))
    #expect("\(key)" == "[redacted]")
  }

  @Test("Sealing refuses a PEM that is no Ed25519 key", arguments: ["", "nonsense", agreement, encrypted])
  func badPEM(text: String) {
    #expect(throws: SealingError.self) { try SigningKey(pem: Secret(text)) }
    #expect(throws: SealingError.self) { try VerifyingKey(pem: text) }
    #expect(throws: SealingError.self) { try VerifyingKey(raw: Array(text.utf8.prefix(31))) }
  }

  /// An X25519 key: well-formed, of another kind.
  private static let agreement = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VuBCIEIHDzpI6I9f8BWrvpkOf6b3MuOxyEDVw5xbZtJHMYF/tb
    -----END PRIVATE KEY-----
    """
  /// An Ed25519 key under a password.
  private static let encrypted = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgkV4rPeZXNDAICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEJniqUo4KoLYR8Nf7AW5V8sEQFc8
    +iIYRD9lswwRMchwfdoE9hLsldWuHdT7hAH7PZ2Uf+EraiY4UauIlcKqbQO+236H
    TgeTTE36ZQ6/RzbHHUo=
    -----END ENCRYPTED PRIVATE KEY-----
    """
}
