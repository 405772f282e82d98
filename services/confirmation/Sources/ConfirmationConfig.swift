internal import Primitives

/// `STATEMENT_SIGNING_KEY`: the Ed25519 private key (PKCS 8, PEM) that signs confirmation statements.
struct ConfirmationConfig: Sendable {
  let statementSigningKey: Secret<String>

  init(_ configuration: inout Configuration) {
    statementSigningKey = configuration.secret("STATEMENT_SIGNING_KEY")
  }
}
