internal import API
internal import Primitives
internal import Protobuf
package import Sealing

/// A confirmed passing that a statement has proved.
struct ProvedPassing: Sendable, Equatable {
  let accountID: Identifier
  let confirmationID: Identifier
}

/// Decides whether a signed statement proves a confirmed passing.
package struct ReleaseRules: Sendable {
  /// What a statement's signature begins with, so that none made for another purpose passes.
  package static let prefix = Array("afterthoughts.confirmation.v1".utf8) + [0]

  private let keys: [VerifyingKey]

  /// `keys` are those of the confirmation service, of now and of before.
  package init(keys: [VerifyingKey]) {
    self.keys = keys
  }

  /// Throws PERMISSION_DENIED unless one of the keys signed the statement and it names an account. `key_id` only says
  /// which key to look at first; what counts is the signature.
  func prove(_ signed: ConfirmationV1.SignedStatement?) throws(ServiceError) -> ProvedPassing {
    guard let signed else { throw refused() }
    let message = ReleaseRules.prefix + signed.statement
    let ordered = keys.filter { $0.keyID == signed.keyID } + keys.filter { $0.keyID != signed.keyID }
    guard ordered.contains(where: { $0.isValid(signed.signature, for: message) }) else { throw refused() }
    guard let statement = try? ConfirmationV1.ConfirmationStatement(serialized: signed.statement),
      let accountID = Identifier(statement.accountID), let confirmationID = Identifier(statement.confirmationID)
    else { throw refused() }
    return ProvedPassing(accountID: accountID, confirmationID: confirmationID)
  }

  private func refused() -> ServiceError {
    .denied("The statement does not prove a confirmed passing.")
  }
}
