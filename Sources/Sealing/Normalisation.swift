private import CUtf8proc
private import Glibc
package import Primitives

/// The forms in which text from people is compared and stored.
package enum Normalisation {
  /// A security answer as it is hashed (OP-10): compatibility forms and case folded, white space trimmed and
  /// collapsed. Empty when nothing is left.
  package static func answer(_ text: String) -> String {
    let folded = map(
      text, [UTF8PROC_STABLE, UTF8PROC_COMPOSE, UTF8PROC_COMPAT, UTF8PROC_CASEFOLD, UTF8PROC_IGNORE])
    let words = folded.unicodeScalars.split { $0.properties.isWhitespace || $0.properties.generalCategory == .control }
    return words.map { String(String.UnicodeScalarView($0)) }.joined(separator: " ")
  }

  /// A password as it is hashed: NFKC, so that it is the same from every keyboard (NIST SP 800-63B-4). Case and
  /// spaces stay.
  package static func password(_ text: String) -> String {
    map(text, [UTF8PROC_STABLE, UTF8PROC_COMPOSE, UTF8PROC_COMPAT])
  }

  /// The address as mailed, its domain in lower case; nil unless it has a practical mailbox's shape (RFC 5321): an
  /// ASCII dot-atom of at most 64 bytes, `@`, a domain of two or more labels, at most 254 bytes in all. White space
  /// around it is dropped.
  package static func email(_ text: String) -> String? {
    let address = trimmed(text)
    guard address.utf8.count <= 254, let at = address.utf8.lastIndex(of: UInt8(ascii: "@")) else { return nil }
    let local = address[..<at]
    let domain = address[address.utf8.index(after: at)...]
    guard (1...64).contains(local.utf8.count), isDotAtom(local), isDomain(domain) else { return nil }
    return local + "@" + domain.lowercased()
  }

  /// What makes two addresses one account: the whole address case-folded.
  package static func emailKey(_ text: String) -> String {
    map(trimmed(text), [UTF8PROC_STABLE, UTF8PROC_COMPOSE, UTF8PROC_COMPAT, UTF8PROC_CASEFOLD])
  }

  /// An international number in E.164's form: `+`, then 8 to 15 digits of which the first is no 0. Spaces, hyphens,
  /// full stops and round brackets are dropped; nil for anything else.
  package static func phone(_ text: String) -> String? {
    let kept = trimmed(text).utf8.filter { !" -.()".utf8.contains($0) }
    guard kept.first == UInt8(ascii: "+"), (9...16).contains(kept.count), kept[1] != UInt8(ascii: "0"),
      kept.dropFirst().allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
    else { return nil }
    return String(decoding: kept, as: UTF8.self)
  }

  /// A person's or a group's name: `line` of 1 to 100 characters.
  package static func displayName(
    _ text: String, field: String, lengths: ClosedRange<Int> = 1...100
  ) throws(ServiceError) -> String {
    try line(text, field: field, lengths: lengths)
  }

  /// One line of text in NFC, trimmed. INVALID_ARGUMENT naming `field` when its length in characters is outside
  /// `lengths` or it holds a control, line-breaking or direction-changing character. With 0 in `lengths` a blank text
  /// is allowed and becomes "".
  package static func line(
    _ text: String, field: String, lengths: ClosedRange<Int>
  ) throws(ServiceError) -> String {
    let result = trimmed(map(text, [UTF8PROC_STABLE, UTF8PROC_COMPOSE]))
    guard !result.unicodeScalars.contains(where: isForbiddenInLine) else {
      throw ServiceError.invalid(field, "must not hold control or direction-changing characters")
    }
    return try checkingLength(result, field, lengths)
  }

  /// Text of several lines in NFC with `\n` between them, trimmed at both ends. INVALID_ARGUMENT naming `field` when
  /// its length in characters is outside `lengths` or it holds a control character other than line feed and tab.
  package static func paragraphs(
    _ text: String, field: String, lengths: ClosedRange<Int>
  ) throws(ServiceError) -> String {
    let composed = map(text, [UTF8PROC_STABLE, UTF8PROC_COMPOSE])
    var lines: [UInt8] = []
    lines.reserveCapacity(composed.utf8.count)
    var previous: UInt8 = 0
    for byte in composed.utf8 {
      if byte == 13 { lines.append(10) } else if !(byte == 10 && previous == 13) { lines.append(byte) }
      previous = byte
    }
    let result = trimmed(String(decoding: lines, as: UTF8.self))
    let isForbidden = { (scalar: Unicode.Scalar) in
      scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t"
        || scalar.properties.isNoncharacterCodePoint
    }
    guard !result.unicodeScalars.contains(where: isForbidden) else {
      throw ServiceError.invalid(field, "must not hold control characters")
    }
    return try checkingLength(result, field, lengths)
  }

  private static func checkingLength(
    _ text: String, _ field: String, _ lengths: ClosedRange<Int>
  ) throws(ServiceError) -> String {
    let visible = text.unicodeScalars.contains {
      !$0.properties.isWhitespace && !$0.properties.isDefaultIgnorableCodePoint
    }
    guard visible else {
      if lengths.lowerBound == 0 { return "" }
      throw ServiceError.invalid(field, "must not be blank")
    }
    // The second bound stops one character from carrying thousands of combining marks.
    guard lengths.contains(text.count), text.utf8.count <= 32 * lengths.upperBound else {
      let rule =
        lengths.lowerBound > 1
        ? "must have \(lengths.lowerBound) to \(lengths.upperBound) characters"
        : "must have at most \(lengths.upperBound) characters"
      throw ServiceError.invalid(field, rule)
    }
    return text
  }

  private static func isForbiddenInLine(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default:
      scalar.properties.isBidiControl || scalar.properties.isNoncharacterCodePoint || scalar == "\u{FEFF}"
    }
  }

  private static func trimmed(_ text: String) -> String {
    var scalars = text.unicodeScalars[...]
    while let first = scalars.first, first.properties.isWhitespace { scalars.removeFirst() }
    while let last = scalars.last, last.properties.isWhitespace { scalars.removeLast() }
    return String(scalars)
  }

  private static func isDotAtom(_ text: Substring) -> Bool {
    text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { atom in
      !atom.isEmpty && atom.utf8.allSatisfy { isLetterOrDigit($0) || "!#$%&'*+-/=?^_`{|}~".utf8.contains($0) }
    }
  }

  private static func isDomain(_ text: Substring) -> Bool {
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    let hyphen = UInt8(ascii: "-")
    return labels.count >= 2
      && labels.allSatisfy { label in
        (1...63).contains(label.utf8.count) && label.utf8.first != hyphen && label.utf8.last != hyphen
          && label.utf8.allSatisfy { isLetterOrDigit($0) || $0 == hyphen }
      }
      && !labels[labels.count - 1].utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }

  /// Safety: utf8proc reads `count` bytes and returns memory of its own, which is copied and freed here.
  private static func map(_ text: String, _ options: [utf8proc_option_t]) -> String {
    let bytes = Array(text.utf8)
    var output: UnsafeMutablePointer<UInt8>?
    let flags = utf8proc_option_t(rawValue: options.reduce(0) { $0 | $1.rawValue })
    let count = utf8proc_map(bytes, bytes.count, &output, flags)
    defer { free(output) }
    // Valid UTF-8 cannot fail but for want of memory.
    guard count >= 0, let output else { preconditionFailure("utf8proc: \(count)") }
    return String(decoding: UnsafeBufferPointer(start: output, count: count), as: UTF8.self)
  }
}
