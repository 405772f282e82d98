internal import HTTPServer
internal import Primitives

/// What a page shows, before it becomes a response.
struct Page: Sendable {
  enum Body: Sendable {
    /// The heading and the HTML below it.
    case html(title: String, content: String)
    case text(String)
    case style(String)
    case redirect(String)
  }

  var status = 200
  var body: Body
  var retryAfterSeconds: Int?

  static func html(_ title: String, _ content: String, status: Int = 200) -> Page {
    Page(status: status, body: .html(title: title, content: content))
  }

  static func text(_ text: String) -> Page { Page(body: .text(text)) }
  static func redirect(_ path: String) -> Page { Page(body: .redirect(path)) }
  static let style = Page(body: .style(styleSheet))

  /// A paragraph of plain text.
  static func paragraph(_ text: String) -> String { "<p>\(HTMLText.escape(text))</p>\n" }

  /// The whole document.
  static func document(_ title: String, _ content: String) -> String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="robots" content="noindex">
    <title>\(HTMLText.escape(title)) · Afterthoughts</title>
    <link rel="stylesheet" href="/style.css">
    </head>
    <body>
    <header><a href="/">Afterthoughts</a></header>
    <main>
    <h1>\(HTMLText.escape(title))</h1>
    \(content)</main>
    </body>
    </html>

    """
  }

  /// `30 November 2026`, the date in UTC.
  static func date(_ instant: Instant) -> String {
    let months = [
      "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
      "December",
    ]
    let seconds = instant.seconds
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let date = CivilDate(daysSinceEpoch: Int(days))
    return "\(date.day) \(months[date.month - 1]) \(date.year)"
  }

  private static let styleSheet = """
    :root { color-scheme: light dark; --ink: #24231f; --paper: #fbf9f4; --line: #d8d2c4; --accent: #3c5a4c; }
    @media (prefers-color-scheme: dark) {
      :root { --ink: #e9e5da; --paper: #1d1c19; --line: #45423a; --accent: #9dc4b1; }
    }
    body { margin: 0; background: var(--paper); color: var(--ink); font: 1.1rem/1.6 Georgia, serif; }
    header { padding: 1rem 1.5rem; border-bottom: 1px solid var(--line); }
    header a { color: inherit; text-decoration: none; letter-spacing: 0.04em; }
    main { max-width: 38rem; margin: 0 auto; padding: 1.5rem; }
    h1 { font-weight: normal; line-height: 1.25; overflow-wrap: anywhere; }
    article { border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); padding: 0.5rem 0;
      margin: 1.5rem 0; overflow-wrap: anywhere; }
    article.note { white-space: pre-wrap; padding: 1rem 0; }
    .meta { color: var(--ink); opacity: 0.8; }
    form { display: inline-block; margin: 0 0.75rem 0.75rem 0; }
    button { font: inherit; padding: 0.55rem 1.2rem; border-radius: 0.4rem; border: 1px solid var(--accent);
      background: var(--accent); color: var(--paper); cursor: pointer; }
    button.quiet { background: transparent; color: var(--accent); }
    a { color: var(--accent); }
    """
}

/// Pages that say why there is none.
enum ErrorPages {
  static func page(for error: ServiceError) -> Page {
    switch error.code {
    case .notFound:
      return .html(
        "Nothing here",
        Page.paragraph("This link is not valid, or no longer. Check that it is complete, as it stands in the mail."),
        status: 404)
    case .invalidArgument, .failedPrecondition, .aborted, .alreadyExists, .outOfRange:
      return .html("That did not work", Page.paragraph(error.message), status: 400)
    case .permissionDenied, .unauthenticated:
      return .html(
        "Please open the link again",
        Page.paragraph("The form was too old or came from elsewhere. Open the link from your mail and try once more."),
        status: 403)
    case .resourceExhausted:
      var page = Page.html("Please wait a little", Page.paragraph(error.message), status: 429)
      page.retryAfterSeconds = error.retryAfter.map { max(1, Int($0.components.seconds)) }
      return page
    case .unavailable, .deadlineExceeded, .cancelled:
      var page = Page.html(
        "Please try again in a moment",
        Page.paragraph("A part of Afterthoughts cannot be reached just now. Nothing is lost; your link stays valid."),
        status: 503)
      page.retryAfterSeconds = 5
      return page
    default:
      return .html(
        "Something went wrong",
        Page.paragraph("The fault is ours and has been noted. Nothing is lost; your link stays valid."), status: 500)
    }
  }
}

/// Pages without data.
enum LandingPages {
  static let home = Page.html(
    "Words that wait",
    Page.paragraph(
      "Afterthoughts keeps the letters and notes a person prepares, and brings each to the right people on the right "
        + "day, once a trusted administrator has confirmed the person's passing.")
      + Page.paragraph("If a mail brought you here, open the link it holds: you need no account to read or to answer."))
}
