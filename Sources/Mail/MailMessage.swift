package import Primitives

/// One side of a mail.
package struct MailAddress: Sendable, Equatable {
  /// An ASCII mailbox such as `ann@example.com`, at most 254 bytes.
  package let address: String
  /// Any text of one line, or "".
  package let displayName: String

  package init(_ address: String, displayName: String = "") {
    self.address = address
    self.displayName = displayName
  }
}

/// A mail to one person. No header field may hold a control character: `Mailer.send` then throws
/// `MailError.invalid` before anything leaves.
package struct MailMessage: Sendable, Equatable {
  package struct Header: Sendable, Equatable {
    /// A field name that the mailer does not write itself, such as `Auto-Submitted`.
    package let name: String
    /// At most 900 bytes.
    package let value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  package var from: MailAddress
  package var to: MailAddress
  /// At most 900 bytes.
  package var subject: String
  /// Lines may end in any usual way and have any length.
  package var textBody: String
  package var htmlBody: String?
  /// `<unique@domain>`; the angle brackets may be left out. The same for every try of one mail, so that a repeat can
  /// be recognised.
  package var messageID: String
  package var date: Instant
  package var headers: [Header]

  package init(
    from: MailAddress, to: MailAddress, subject: String, textBody: String, htmlBody: String? = nil, messageID: String,
    date: Instant, headers: [Header] = []
  ) {
    self.from = from
    self.to = to
    self.subject = subject
    self.textBody = textBody
    self.htmlBody = htmlBody
    self.messageID = messageID
    self.date = date
    self.headers = headers
  }
}
