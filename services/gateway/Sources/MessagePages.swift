internal import API
internal import EventLoop
internal import HTTPServer
internal import Markdown
internal import Primitives
internal import RPC

/// A message behind its secure link (GW-35): a cover that changes nothing, the message once it is opened, and the
/// acknowledgment.
struct MessagePages: Sendable {
  let delivery: DeliveryV1.DeliveryServiceClient
  /// Renders letters: a long one takes a while.
  let pool: BlockingPool

  func cover(_ request: HTTPRequest) async throws -> Page {
    let token = request.segments[1]
    let link = try await delivery.getLink(.init(token: token), CallOptions(timeout: .seconds(10)))
    let kind = link.type == .note ? "note" : "letter"
    return .html(
      "A \(kind) from \(link.senderName)",
      Page.paragraph("Dear \(link.recipientName),")
        + Page.paragraph("\(link.senderName) left this \(kind) for you. Open it when you are ready.")
        + MessagePages.meta("Delivered on", link.deliverTime)
        + Forms.form(action: "/message/\(token)/open", button: "Open the \(kind)"))
  }

  func open(_ request: HTTPRequest) async throws -> Page {
    try await message(request.segments[1])
  }

  func acknowledge(_ request: HTTPRequest) async throws -> Page {
    let token = request.segments[1]
    _ = try await delivery.acknowledge(.init(token: token), CallOptions(timeout: .seconds(10)))
    return try await message(token)
  }

  private func message(_ token: String) async throws -> Page {
    let message = try await delivery.openLink(.init(token: token), CallOptions(timeout: .seconds(10)))
    var content =
      "<p class=\"meta\">From <strong class=\"sender\">\(HTMLText.escape(message.senderName))</strong></p>\n"
    content += MessagePages.meta("Delivered on", message.deliverTime)
    if message.type == .letter {
      let letter = try await pool.run { Markdown.html(message.body) }
      content += "<article class=\"letter\">\n\(letter)</article>\n"
    } else {
      content += "<article class=\"note\">\(HTMLText.escape(message.body))</article>\n"
    }
    if let time = message.acknowledgeTime.flatMap({ Instant($0) }) {
      content += "<p class=\"acknowledged\">You acknowledged this on \(Page.date(time)).</p>\n"
    } else {
      content += Forms.form(
        action: "/message/\(token)/acknowledge", button: "Let it be known that I received this", quiet: true)
    }
    return .html(message.title, content)
  }

  private static func meta(_ label: String, _ time: GoogleProtobuf.Timestamp?) -> String {
    guard let instant = time.flatMap({ Instant($0) }) else { return "" }
    return "<p class=\"meta\">\(label) <time datetime=\"\(instant)\">\(Page.date(instant))</time></p>\n"
  }
}
