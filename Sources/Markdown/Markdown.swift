package import Primitives

/// Letter formatting (OP-26): paragraphs, headings, bold, italic, underline (`++text++`), lists and links, written in
/// CommonMark. Whatever else CommonMark knows loses its markup and keeps its words; HTML is shown as the text it is.
package enum Markdown {
  /// The longest source that a service takes, in UTF-8 bytes.
  package static let sourceBytesMax = 1 << 20

  /// HTML that is safe to put into a page or a mail: no tag, attribute or address scheme outside the subset can come
  /// out, whatever goes in. Takes any text.
  package static func html(_ source: String) -> String {
    var renderer = HTMLRenderer()
    MarkdownDocument(source).walk(&renderer)
    return renderer.finished()
  }

  /// The words without the markup, for a mail's text body or a preview: paragraphs with an empty line between them,
  /// `- ` and `1. ` before list items, a link's address in `<>` behind its words unless `withAddresses` is false.
  package static func plainText(_ source: String, withAddresses: Bool = true) -> String {
    var renderer = PlainTextRenderer(withAddresses: withAddresses)
    MarkdownDocument(source).walk(&renderer)
    return renderer.finished()
  }

  /// INVALID_ARGUMENT naming `field` when the source is over `bytesMax` bytes or, unless `allowsBlank`, shows no words.
  package static func validate(
    _ source: String, field: String, bytesMax: Int = sourceBytesMax, allowsBlank: Bool = false
  ) throws(ServiceError) {
    guard source.utf8.count <= bytesMax else {
      throw ServiceError.invalid(field, "must have at most \(bytesMax) bytes")
    }
    guard allowsBlank || !plainText(source).isEmpty else { throw ServiceError.invalid(field, "must not be blank") }
  }
}
