private import CCmark

/// What a renderer sees of a document: only the subset's own elements.
enum MarkdownEvent {
  case enter(MarkdownElement)
  case leave(MarkdownElement)
  case text(String)
  case lineBreak
}

enum MarkdownElement: Equatable {
  /// `isTight` in a list whose items stand without empty lines between them.
  case paragraph(isTight: Bool)
  /// Level 1 to 6.
  case heading(Int)
  /// `start` is nil for a list without numbers.
  case list(start: Int?)
  case item
  case strong
  case emphasis
  case underline
  /// An http, https or mailto address.
  case link(String)
}

protocol MarkdownRenderer {
  mutating func render(_ event: MarkdownEvent)
}

/// A parsed source.
struct MarkdownDocument: ~Copyable {
  /// Elements nested deeper than this lose their markup: browsers and readers need not suffer ten thousand lists.
  private static let depthMax = 32

  /// Safety: owned by this value and freed once, in `deinit`; nodes are used only within `walk`.
  private let root: OpaquePointer

  init(_ source: String) {
    // The zero byte is not part of the text; it gives an empty text an address.
    let bytes = EscapedPlus.hide(source) + [0]
    let parsed = bytes.withUnsafeBytes {
      cmark_parse_document($0.bindMemory(to: CChar.self).baseAddress, $0.count - 1, 0)
    }
    guard let parsed else { preconditionFailure("cmark makes a document of any text") }
    root = parsed
  }

  deinit { cmark_node_free(root) }

  /// Every event of the document, in order. Each `enter` has its `leave`.
  func walk(_ renderer: inout some MarkdownRenderer) {
    guard let iterator = cmark_iter_new(root) else { return }
    defer { cmark_iter_free(iterator) }
    var walker = MarkdownWalker(depthMax: MarkdownDocument.depthMax)
    while true {
      let event = cmark_iter_next(iterator)
      if event == CMARK_EVENT_DONE { return }
      walker.visit(cmark_iter_get_node(iterator), isEntering: event == CMARK_EVENT_ENTER, &renderer)
    }
  }
}
