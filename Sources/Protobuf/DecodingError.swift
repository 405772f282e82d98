/// Why bytes are not a message of the expected type.
package struct DecodingError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The rule that the bytes break.
  package enum Rule: String, Sendable, CaseIterable {
    case truncated = "ends inside a field"
    case overlongVarint = "has a number of more than 64 bits"
    case invalidTag = "has an invalid field number"
    case unsupportedWireType = "has a group or an unknown wire type"
    case wrongWireType = "has the wrong wire type"
    case invalidUTF8 = "is not UTF-8"
    case embeddedNUL = "holds a NUL character"
    case repeatedMessage = "appears more than once"
    case budgetExceeded = "needs too much memory for its size"
    case refused = "was refused by the decoder"
  }

  package let rule: Rule
  /// The proto name of the message type in which it happened.
  package let message: String
  /// The proto name of the field, empty where none is known.
  package let field: String

  package init(_ rule: Rule, message: String, field: String = "") {
    self.rule = rule
    self.message = message
    self.field = field
  }

  /// One line without any content of the message.
  package var description: String {
    field.isEmpty ? "\(message) \(rule.rawValue)" : "\(message).\(field) \(rule.rawValue)"
  }
}
