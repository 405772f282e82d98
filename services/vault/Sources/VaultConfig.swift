package import Primitives
package import Sealing

/// What vault needs to know beside what every service does.
package struct VaultConfig: Sendable {
  /// The keys that confirmation signs its statements with: the present one and those of before.
  package let statementKeys: [VerifyingKey]

  /// `STATEMENT_VERIFYING_KEY`: one or more Ed25519 public keys in PEM, one after the other.
  package init(_ configuration: inout Configuration) {
    guard let text = configuration.optional("STATEMENT_VERIFYING_KEY") else {
      statementKeys = []
      configuration.fault("STATEMENT_VERIFYING_KEY: is not set (nor STATEMENT_VERIFYING_KEY_FILE)")
      return
    }
    do {
      statementKeys = try VaultConfig.keys(text)
    } catch {
      statementKeys = []
      configuration.fault("STATEMENT_VERIFYING_KEY: \(error)")
    }
  }

  private static func keys(_ text: String) throws(SealingError) -> [VerifyingKey] {
    var keys: [VerifyingKey] = []
    var lines: [Substring] = []
    for line in text.split(whereSeparator: \.isNewline) {
      lines.append(line)
      guard line.hasPrefix("-----END ") else { continue }
      keys.append(try VerifyingKey(pem: lines.joined(separator: "\n") + "\n"))
      lines.removeAll()
    }
    guard !keys.isEmpty, lines.allSatisfy({ $0.allSatisfy(\.isWhitespace) }) else { throw .badKey("it is no PEM") }
    return keys
  }
}
