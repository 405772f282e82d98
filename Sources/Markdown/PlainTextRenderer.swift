/// Writes the words alone.
struct PlainTextRenderer: MarkdownRenderer {
  private let withAddresses: Bool
  private var output: [UInt8] = []
  /// The next number of each open list; nil for a list without numbers.
  private var lists: [Int?] = []
  /// Line breaks owed before the next words.
  private var breaks = 0
  /// Stands before the next words once: an item's mark.
  private var mark = ""
  private var linkStarts: [Int] = []

  init(withAddresses: Bool) {
    self.withAddresses = withAddresses
  }

  mutating func render(_ event: MarkdownEvent) {
    switch event {
    case .enter(let element): enter(element)
    case .leave(let element): leave(element)
    case .text(let text): append(text)
    case .lineBreak: breaks = max(breaks, 1)
    }
  }

  func finished() -> String { String(decoding: output, as: UTF8.self) }

  private mutating func enter(_ element: MarkdownElement) {
    switch element {
    case .list(let start): lists.append(start)
    case .item:
      guard let number = lists.last else { return }
      mark = number.map { "\($0). " } ?? "- "
      if let number { lists[lists.count - 1] = number + 1 }
    case .link: linkStarts.append(output.count)
    case .paragraph, .heading, .strong, .emphasis, .underline: break
    }
  }

  private mutating func leave(_ element: MarkdownElement) {
    switch element {
    case .paragraph(isTight: true): breaks = max(breaks, 1)
    case .paragraph(isTight: false), .heading: breaks = max(breaks, 2)
    case .item: breaks = max(breaks, 1)
    case .list:
      lists.removeLast()
      breaks = max(breaks, lists.isEmpty ? 2 : 1)
    case .link(let address):
      let start = linkStarts.removeLast()
      // A bare address need not stand twice.
      let words = String(decoding: output[min(start, output.count)...], as: UTF8.self)
      if withAddresses, !words.hasSuffix(address), address != "mailto:" + words { append(" <\(address)>") }
    case .strong, .emphasis, .underline: break
    }
  }

  private mutating func append(_ text: String) {
    guard !text.isEmpty else { return }
    let indent = String(repeating: "  ", count: max(0, lists.count - 1))
    if output.isEmpty {
      output.append(contentsOf: (indent + mark).utf8)
    } else if breaks > 0 || !mark.isEmpty {
      output.append(contentsOf: String(repeating: "\n", count: max(1, breaks)).utf8)
      output.append(contentsOf: (indent + (mark.isEmpty && !lists.isEmpty ? "  " : mark)).utf8)
    }
    breaks = 0
    mark = ""
    output.append(contentsOf: text.utf8)
  }
}
