/// One SQL statement with its bound parameters. Write it as a string literal: every interpolated value becomes a
/// parameter (`$1`, `$2`, …) that the server never reads as SQL. The same text is prepared once per connection, so
/// texts should come from a small fixed set.
///
/// A parameter has the type of its Swift value (`Int` is `bigint`, `String` is `text`); write a cast where the
/// statement needs another one, such as `\(days)::int`.
package struct Query: Sendable, ExpressibleByStringInterpolation, CustomStringConvertible {
  package let text: String
  let parameters: Parameters

  package init(stringLiteral value: String) {
    text = value
    parameters = Parameters()
  }

  package init(stringInterpolation: StringInterpolation) {
    text = stringInterpolation.text
    parameters = stringInterpolation.parameters
  }

  /// The text without any value.
  package var description: String { text }

  /// Collects the text and the parameters of a `Query`.
  package struct StringInterpolation: StringInterpolationProtocol {
    var text: String
    var parameters = Parameters()

    package init(literalCapacity: Int, interpolationCount: Int) {
      text = ""
      text.reserveCapacity(literalCapacity + interpolationCount * 3)
    }

    package mutating func appendLiteral(_ literal: String) {
      text.append(literal)
    }

    /// Binds `value` as the next parameter.
    package mutating func appendInterpolation(_ value: some PostgresCodable) {
      parameters.append(value)
      text.append("$")
      text.append(parameters.count.description)
    }

    /// Binds `value` as the next parameter; nil is NULL. The compiler takes an optional for a mistake without this.
    package mutating func appendInterpolation<Value: PostgresCodable>(_ value: Value?) {
      parameters.append(value)
      text.append("$")
      text.append(parameters.count.description)
    }

    /// Puts `sql` into the text as it is. Never for anything that came from outside: names and fragments that the
    /// code itself chose.
    package mutating func appendInterpolation(unescaped sql: String) {
      text.append(sql)
    }

    /// Splices another query in, its parameters renumbered: for optional conditions and shared column lists.
    package mutating func appendInterpolation(_ fragment: Query) {
      guard fragment.parameters.count > 0 else {
        text.append(fragment.text)
        return
      }
      let base = parameters.count
      parameters.append(contentsOf: fragment.parameters)
      text.append(fragment.renumbered(from: base))
    }
  }

  /// The text with `base` added to every `$n`.
  private func renumbered(from base: Int) -> String {
    guard base > 0 else { return text }
    var output = ""
    var number: Int?
    for scalar in text.unicodeScalars {
      if let value = number {
        if let digit = Query.digit(scalar) {
          number = value * 10 + digit
          continue
        }
        output += value > 0 ? String(value + base) : ""
        number = nil
      }
      output.unicodeScalars.append(scalar)
      if scalar == "$" { number = 0 }
    }
    if let value = number, value > 0 { output += String(value + base) }
    return output
  }

  private static func digit(_ scalar: Unicode.Scalar) -> Int? {
    ("0"..."9").contains(scalar) ? Int(scalar.value - 48) : nil
  }
}
