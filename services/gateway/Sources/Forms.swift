internal import HTTPServer
internal import Primitives

/// Forms that only the page they came from can submit, and the headers that every response carries.
///
/// A page sets a random cookie and repeats its value in each of its forms; another site can do neither. The browser's
/// own word on where a request comes from (`Sec-Fetch-Site`, `Origin`) is heeded where it is given.
struct Forms: Sendable {
  static let fieldName = "form_token"
  static let requestName = "request_id"
  /// Stands in page content where a form's hidden fields go.
  static let placeholder = "<!--hidden fields-->"

  private let origin: String
  private let isSecure: Bool

  init(publicURL: String) {
    isSecure = publicURL.hasPrefix("https://")
    let scheme = isSecure ? "https://" : "http://"
    origin = scheme + publicURL.dropFirst(scheme.count).prefix { $0 != "/" }
  }

  /// The prefix binds the cookie to this host over TLS; without TLS (on loopback) browsers would refuse it.
  private var cookieName: String { isSecure ? "__Host-form" : "form" }

  /// A form with one button. `action` is a path of this site.
  static func form(action: String, button: String, quiet: Bool = false, fields: [(String, String)] = []) -> String {
    var html = "<form method=\"post\" action=\"\(HTMLText.escape(action))\">\(placeholder)"
    for (name, value) in fields {
      html += "<input type=\"hidden\" name=\"\(HTMLText.escape(name))\" value=\"\(HTMLText.escape(value))\">"
    }
    html += "<button\(quiet ? " class=\"quiet\"" : "")>\(HTMLText.escape(button))</button></form>\n"
    return html
  }

  /// PERMISSION_DENIED unless the form came from a page of ours.
  func requireGenuine(_ request: HTTPRequest) throws(ServiceError) {
    if let site = request.headers["sec-fetch-site"], site != "same-origin" { throw .denied() }
    if let from = request.headers["origin"], from != "null", from != origin { throw .denied() }
    guard let cookie = request.cookies[cookieName], cookie.utf8.count == 36, request.form[Forms.fieldName] == cookie
    else { throw .denied() }
  }

  /// The id under which a form's effect is remembered: the same however often the form is sent.
  static func requestID(_ request: HTTPRequest) throws(ServiceError) -> String {
    guard let text = request.form[requestName], Identifier(text) != nil else { throw .denied() }
    return text
  }

  func response(_ page: Page, to request: HTTPRequest) -> HTTPResponse {
    var response: HTTPResponse
    switch page.body {
    case .html(let title, let content): response = html(title, content, page.status, request)
    case .text(let text): response = .text(text, status: page.status)
    case .style(let text):
      response = HTTPResponse(headers: [("Content-Type", "text/css; charset=utf-8")], body: Array(text.utf8))
    case .redirect(let path): response = .redirect(to: path)
    }
    if let seconds = page.retryAfterSeconds { response.headers.append(("Retry-After", "\(seconds)")) }
    response.headers += [
      ("Cache-Control", "no-store"),
      ("Referrer-Policy", "no-referrer"),
      ("X-Robots-Tag", "noindex"),
      ("X-Content-Type-Options", "nosniff"),
      (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
          + "base-uri 'none'"
      ),
    ]
    if isSecure { response.headers.append(("Strict-Transport-Security", "max-age=63072000; includeSubDomains")) }
    return response
  }

  private func html(_ title: String, _ content: String, _ status: Int, _ request: HTTPRequest) -> HTTPResponse {
    var content = content
    var cookie: String?
    if content.contains(Forms.placeholder) {
      let known = request.cookies[cookieName].flatMap { Identifier($0) }
      let token = known ?? Forms.randomToken()
      if known == nil { cookie = "\(token)" }
      content = Forms.fill(content, token)
    }
    var response = HTTPResponse.html(Page.document(title, content), status: status)
    if let cookie {
      let secure = isSecure ? "; Secure" : ""
      response.headers.append(("Set-Cookie", "\(cookieName)=\(cookie); Path=/; HttpOnly; SameSite=Strict\(secure)"))
    }
    return response
  }

  /// Each form gets an id of its own: two choices on one page are two requests.
  private static func fill(_ content: String, _ token: Identifier) -> String {
    var parts = content.split(separator: placeholder, omittingEmptySubsequences: false)
    var filled = String(parts.removeFirst())
    for part in parts {
      filled += "<input type=\"hidden\" name=\"\(fieldName)\" value=\"\(token)\">"
      filled += "<input type=\"hidden\" name=\"\(requestName)\" value=\"\(Identifier())\">"
      filled += part
    }
    return filled
  }

  /// 128 random bits.
  private static func randomToken() -> Identifier {
    var generator = SystemRandomNumberGenerator()
    return Identifier(high: generator.next(), low: generator.next())
  }
}
