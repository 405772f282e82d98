internal import API
internal import Primitives
internal import Protobuf
internal import Sealing

/// The signed statement that opens the vault for delivery.
enum StatementRules {
  /// Goes before the statement when it is signed, so that the key's signatures mean nothing else.
  static let domain: [UInt8] = Array("afterthoughts.confirmation.v1\0".utf8)

  static func sign(_ confirmation: Confirmation, with key: SigningKey) throws -> ConfirmationV1.SignedStatement {
    let statement = ConfirmationV1.ConfirmationStatement(
      confirmationID: "\(confirmation.id)", accountID: "\(confirmation.account)",
      confirmTime: .init(confirmation.confirmTime)
    ).serialized()
    return ConfirmationV1.SignedStatement(
      statement: statement, signature: try key.sign(domain + statement), keyID: key.verifyingKey.keyID)
  }
}
