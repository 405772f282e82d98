/// Writes the subset as HTML. Tags come from the list in `tag` only; everything else is escaped.
struct HTMLRenderer: MarkdownRenderer {
  private var output: [UInt8] = []

  mutating func render(_ event: MarkdownEvent) {
    switch event {
    case .enter(let element): append(HTMLRenderer.tag(element).opening)
    case .leave(let element): append(HTMLRenderer.tag(element).closing)
    case .text(let text): HTMLRenderer.escape(text, to: &output)
    case .lineBreak: append("<br>\n")
    }
  }

  func finished() -> String { String(decoding: output, as: UTF8.self) }

  private mutating func append(_ text: String) { output.append(contentsOf: text.utf8) }

  private static func tag(_ element: MarkdownElement) -> (opening: String, closing: String) {
    switch element {
    case .paragraph(isTight: false): return ("<p>", "</p>\n")
    case .paragraph(isTight: true): return ("", "\n")
    case .heading(let level): return ("<h\(level)>", "</h\(level)>\n")
    case .list(start: nil): return ("<ul>\n", "</ul>\n")
    case .list(start: 1?): return ("<ol>\n", "</ol>\n")
    case .list(start: let start?): return ("<ol start=\"\(start)\">\n", "</ol>\n")
    case .item: return ("<li>", "</li>\n")
    case .strong: return ("<strong>", "</strong>")
    case .emphasis: return ("<em>", "</em>")
    case .underline: return ("<u>", "</u>")
    case .link(let address):
      var escaped: [UInt8] = []
      escape(address, to: &escaped)
      let text = String(decoding: escaped, as: UTF8.self)
      return ("<a href=\"\(text)\" rel=\"noopener noreferrer\" target=\"_blank\">", "</a>")
    }
  }

  private static func escape(_ text: String, to output: inout [UInt8]) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"): output.append(contentsOf: "&amp;".utf8)
      case UInt8(ascii: "<"): output.append(contentsOf: "&lt;".utf8)
      case UInt8(ascii: ">"): output.append(contentsOf: "&gt;".utf8)
      case UInt8(ascii: "\""): output.append(contentsOf: "&quot;".utf8)
      case UInt8(ascii: "'"): output.append(contentsOf: "&#39;".utf8)
      default: output.append(byte)
      }
    }
  }
}
