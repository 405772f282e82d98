package import Primitives

/// Writes header fields (RFC 5322), with encoded words (RFC 2047) for what is not plain ASCII.
package enum MailHeaders {
  private static let valueBytesMax = 900
  private static let reserved: Set<String> = [
    "from", "to", "cc", "bcc", "sender", "subject", "date", "message-id", "mime-version", "return-path", "received",
  ]

  /// Every field of the message but the body's own, each without its final line break. Throws `.invalid` with the
  /// field's name.
  package static func lines(for message: MailMessage) throws(MailError) -> [String] {
    var lines = [
      "From: " + (try mailbox(message.from, field: "from")),
      "To: " + (try mailbox(message.to, field: "to")),
      "Subject: " + (try text(message.subject, field: "subject")),
      "Date: " + date(message.date),
      "Message-ID: " + (try messageID(message.messageID)),
    ]
    for header in message.headers {
      let name = header.name.lowercased()
      guard isFieldName(header.name), !reserved.contains(name), !name.hasPrefix("content-") else {
        throw .invalid(field: "header name")
      }
      guard !header.value.isEmpty else { throw .invalid(field: "header value") }
      lines.append("\(header.name): " + (try text(header.value, field: "header value")))
    }
    return lines
  }

  /// `<address>` for the envelope.
  package static func path(_ address: MailAddress, field: String) throws(MailError) -> String {
    let bytes = address.address.utf8
    guard bytes.count <= 254, bytes.allSatisfy({ 0x21...0x7E ~= $0 && !"<>()[]\\,;:\"".utf8.contains($0) }),
      bytes.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false).count == 2,
      bytes.first != UInt8(ascii: "@"), bytes.last != UInt8(ascii: "@")
    else { throw .invalid(field: field) }
    return "<\(address.address)>"
  }

  private static func mailbox(_ address: MailAddress, field: String) throws(MailError) -> String {
    let path = try path(address, field: field)
    let name = address.displayName
    if name.isEmpty { return path }
    try check(name, field: field)
    if needsEncoding(name) { return encodedWords(name) + "\r\n " + path }
    if name.utf8.allSatisfy({ isAtomByte($0) || $0 == UInt8(ascii: " ") }) { return "\(name) \(path)" }
    var quoted = "\""
    for character in name.unicodeScalars {
      if character == "\"" || character == "\\" { quoted.append("\\") }
      quoted.unicodeScalars.append(character)
    }
    return quoted + "\" " + path
  }

  private static func text(_ value: String, field: String) throws(MailError) -> String {
    try check(value, field: field)
    return needsEncoding(value) ? encodedWords(value) : value
  }

  private static func messageID(_ id: String) throws(MailError) -> String {
    let bare = id.hasPrefix("<") && id.hasSuffix(">") ? String(id.dropFirst().dropLast()) : id
    return try path(MailAddress(bare), field: "message id")
  }

  /// No control character of any kind, no line or paragraph separator, and a bounded length.
  private static func check(_ value: String, field: String) throws(MailError) {
    let isBad = value.unicodeScalars.contains { scalar in
      switch scalar.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator: true
      default: false
      }
    }
    guard !isBad, value.utf8.count <= valueBytesMax else { throw .invalid(field: field) }
  }

  private static func needsEncoding(_ value: String) -> Bool {
    value.utf8.count > 200 || value.utf8.contains { $0 >= 0x80 } || value.hasPrefix(" ") || value.hasSuffix(" ")
      || value.utf8.split(separator: UInt8(ascii: "?"), omittingEmptySubsequences: false).dropLast()
        .contains { $0.last == UInt8(ascii: "=") }
  }

  /// Encoded words of at most 75 characters, one a line, never split inside a character's bytes.
  private static func encodedWords(_ value: String) -> String {
    var words: [String] = []
    var chunk: [UInt8] = []
    for scalar in value.unicodeScalars {
      let bytes = Array(String(scalar).utf8)
      if chunk.count + bytes.count > 45 {
        words.append(word(chunk))
        chunk = []
      }
      chunk += bytes
    }
    words.append(word(chunk))
    return words.joined(separator: "\r\n ")
  }

  private static func word(_ bytes: [UInt8]) -> String {
    "=?UTF-8?B?\(Base64.encode(bytes, alphabet: .standard, padding: true))?="
  }

  /// Such as `Mon, 30 Nov 2026 19:31:40 +0000`.
  package static func date(_ instant: Instant) -> String {
    let days = Int((Double(instant.seconds) / 86400).rounded(.down))
    let date = CivilDate(daysSinceEpoch: days)
    let second = Int(instant.seconds) - days * 86400
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7 + 7) % 7]
    let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][date.month - 1]
    let clock = [second / 3600, second / 60 % 60, second % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
    return "\(weekday), \(date.day) \(month) \(date.year) \(clock.joined(separator: ":")) +0000"
  }

  private static func isFieldName(_ name: String) -> Bool {
    (1...60).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }

  private static func isAtomByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-/=?^_`{|}~".utf8.contains(byte)
    }
  }
}
