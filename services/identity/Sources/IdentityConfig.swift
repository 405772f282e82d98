package import Primitives
package import Sealing

/// The settings that only identity has.
package struct IdentityConfig: Sendable {
  /// Signs access tokens.
  package let signingKey: SigningKey
  /// The key before it, whose last tokens may still be about.
  package let previousKey: VerifyingKey?
  /// The `iss` of access tokens.
  package let issuer: String

  package init(signingKey: SigningKey, previousKey: VerifyingKey? = nil, issuer: String = "afterthoughts") {
    self.signingKey = signingKey
    self.previousKey = previousKey
    self.issuer = issuer
  }

  /// `TOKEN_SIGNING_KEY` (PKCS #8 PEM of an Ed25519 key), `TOKEN_PREVIOUS_VERIFYING_KEY` (PEM, may be missing),
  /// `TOKEN_ISSUER` (default `afterthoughts`).
  package init(_ configuration: inout Configuration) {
    let pem = configuration.secret("TOKEN_SIGNING_KEY")
    do {
      signingKey = try SigningKey(pem: pem)
    } catch {
      configuration.fault("TOKEN_SIGNING_KEY: \(error)")
      // Never used: the fault keeps the service from starting.
      signingKey = .random()
    }
    var previousKey: VerifyingKey?
    if let pem = configuration.optional("TOKEN_PREVIOUS_VERIFYING_KEY") {
      do {
        previousKey = try VerifyingKey(pem: pem)
      } catch {
        configuration.fault("TOKEN_PREVIOUS_VERIFYING_KEY: \(error)")
      }
    }
    self.previousKey = previousKey
    issuer = configuration.text("TOKEN_ISSUER", default: "afterthoughts")
  }

  /// What verifies access tokens, the current key first.
  package var verifyingKeys: [VerifyingKey] { [signingKey.verifyingKey] + (previousKey.map { [$0] } ?? []) }
}
