private import CCmark

/// Turns cmark's nodes into events of the subset.
struct MarkdownWalker {
  let depthMax: Int
  /// What each open node became; nil when it lost its markup.
  private var open: [MarkdownElement?] = []
  private var depth = 0
  private var underlines = UnderlineMarks()

  init(depthMax: Int) {
    self.depthMax = depthMax
  }

  mutating func visit(_ node: OpaquePointer?, isEntering: Bool, _ renderer: inout some MarkdownRenderer) {
    guard let node else { return }
    switch cmark_node_get_type(node) {
    case CMARK_NODE_TEXT:
      renderText(node, &renderer)
    case CMARK_NODE_SOFTBREAK, CMARK_NODE_LINEBREAK:
      // A letter's line break is meant.
      renderer.render(.lineBreak)
    case CMARK_NODE_CODE, CMARK_NODE_HTML_INLINE:
      renderer.render(.text(EscapedPlus.typed(literal(node))))
    case CMARK_NODE_CODE_BLOCK, CMARK_NODE_HTML_BLOCK:
      renderLines(EscapedPlus.typed(literal(node)), &renderer)
    case CMARK_NODE_THEMATIC_BREAK:
      renderLines("* * *", &renderer)
    default:
      if isEntering { enter(node, &renderer) } else { leave(&renderer) }
    }
  }

  private mutating func enter(_ node: OpaquePointer, _ renderer: inout some MarkdownRenderer) {
    var element = element(of: node)
    if depth >= depthMax, element.map(MarkdownWalker.isNestable) ?? false { element = nil }
    if case .link? = element, open.contains(where: { if case .link? = $0 { true } else { false } }) { element = nil }
    open.append(element)
    underlines.find(in: node)
    guard let element else { return }
    if MarkdownWalker.isNestable(element) { depth += 1 }
    renderer.render(.enter(element))
  }

  private mutating func leave(_ renderer: inout some MarkdownRenderer) {
    guard let element = open.popLast() ?? nil else { return }
    if MarkdownWalker.isNestable(element) { depth -= 1 }
    renderer.render(.leave(element))
  }

  private static func isNestable(_ element: MarkdownElement) -> Bool {
    switch element {
    case .paragraph, .heading: false
    case .list, .item, .strong, .emphasis, .underline, .link: true
    }
  }

  private func element(of node: OpaquePointer) -> MarkdownElement? {
    switch cmark_node_get_type(node) {
    case CMARK_NODE_PARAGRAPH:
      let list = cmark_node_parent(cmark_node_parent(node))
      return .paragraph(isTight: list != nil && cmark_node_get_list_tight(list) == 1)
    case CMARK_NODE_HEADING:
      return .heading(min(max(Int(cmark_node_get_heading_level(node)), 1), 6))
    case CMARK_NODE_LIST:
      let isNumbered = cmark_node_get_list_type(node) == CMARK_ORDERED_LIST
      return .list(start: isNumbered ? Int(cmark_node_get_list_start(node)) : nil)
    case CMARK_NODE_ITEM: return .item
    case CMARK_NODE_STRONG: return .strong
    case CMARK_NODE_EMPH: return .emphasis
    case CMARK_NODE_LINK:
      guard let address = cmark_node_get_url(node) else { return nil }
      return LinkAddress.checked(EscapedPlus.shown(String(cString: address))).map { .link($0) }
    default:
      // The document itself, block quotes, images (whose description stays) and what later versions may bring.
      return nil
    }
  }

  private mutating func renderText(_ node: OpaquePointer, _ renderer: inout some MarkdownRenderer) {
    let text = literal(node)
    guard let marks = underlines.take(node) else { return renderer.render(.text(EscapedPlus.shown(text))) }
    let bytes = Array(text.utf8)
    var position = 0
    for mark in marks {
      if mark.offset > position {
        renderPlain(bytes[position..<mark.offset], &renderer)
      }
      renderer.render(mark.isOpening ? .enter(.underline) : .leave(.underline))
      position = mark.offset + 2
    }
    if position < bytes.count { renderPlain(bytes[position...], &renderer) }
  }

  private func renderPlain(_ bytes: ArraySlice<UInt8>, _ renderer: inout some MarkdownRenderer) {
    renderer.render(.text(EscapedPlus.shown(String(decoding: bytes, as: UTF8.self))))
  }

  /// A block whose content stays as typed: a paragraph with its line breaks.
  private func renderLines(_ text: String, _ renderer: inout some MarkdownRenderer) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    while lines.last?.isEmpty == true { lines.removeLast() }
    guard !lines.isEmpty else { return }
    renderer.render(.enter(.paragraph(isTight: false)))
    for (index, line) in lines.enumerated() {
      if index > 0 { renderer.render(.lineBreak) }
      renderer.render(.text(String(line)))
    }
    renderer.render(.leave(.paragraph(isTight: false)))
  }

  private func literal(_ node: OpaquePointer) -> String {
    cmark_node_get_literal(node).map { String(cString: $0) } ?? ""
  }
}
