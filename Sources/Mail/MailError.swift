/// Why a mail was not sent.
package enum MailError: Error, Equatable, CustomStringConvertible {
  /// A field of the message cannot be put into a mail; nothing was sent.
  case invalid(field: String)
  /// Worth another try later: the server cannot be reached, is busy (4xx), or does not let us in.
  case temporary(code: Int?, text: String)
  /// The server will not take this mail, now or later (5xx).
  case permanent(code: Int, text: String)

  /// Safe for a log: addresses in a server's answer are blotted out.
  package var description: String {
    switch self {
    case .invalid(let field): "the mail's \(field) is unusable"
    case .temporary(let code, let text): "temporary \(code.map(String.init) ?? "-"): \(text)"
    case .permanent(let code, let text): "permanent \(code): \(text)"
    }
  }
}
