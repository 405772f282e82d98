package import EventLoop

/// One request, complete with its body.
package struct HTTPRequest: Sendable {
  /// `GET` or `POST`. A HEAD request comes as GET; its answer goes out without the body.
  package var method: String
  /// The path as the client wrote it, escapes and dot segments included; begins with `/`.
  package var rawPath: String
  /// The path with its escapes decoded. Dot segments are left alone, and an escaped slash looks like any other: route
  /// by `segments`, and never build a file name from either.
  package var path: String
  /// The parts between the slashes of `rawPath`, each decoded.
  package var segments: [String]
  /// Of a repeated name the first value, here and in `form` and `cookies`.
  package var query: [String: String]
  /// Lower-case names; the values of a repeated name are joined by `, `.
  package var headers: [String: String]
  /// The fields of an `application/x-www-form-urlencoded` body; else empty.
  package var form: [String: String]
  package var cookies: [String: String]
  package var body: [UInt8]
  package var peerAddress: SocketAddress

  package init(
    method: String = "GET", rawPath: String = "/", path: String = "/", segments: [String] = [],
    query: [String: String] = [:], headers: [String: String] = [:], form: [String: String] = [:],
    cookies: [String: String] = [:], body: [UInt8] = [], peerAddress: SocketAddress = .v4(0x7f00_0001, port: 0)
  ) {
    self.method = method
    self.rawPath = rawPath
    self.path = path
    self.segments = segments
    self.query = query
    self.headers = headers
    self.form = form
    self.cookies = cookies
    self.body = body
    self.peerAddress = peerAddress
  }
}

/// One answer. A header with a line break in it is not sent: the client gets 500 instead.
package struct HTTPResponse: Sendable {
  package var status: Int
  /// In order; names may repeat. `Content-Length` is added.
  package var headers: [(name: String, value: String)]
  package var body: [UInt8]

  package init(status: Int = 200, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// A page in HTML.
  package static func html(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: [("Content-Type", "text/html; charset=utf-8")], body: Array(text.utf8))
  }

  /// A line of plain text.
  package static func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
  }

  /// Sends the browser elsewhere with a GET (303).
  package static func redirect(to location: String) -> HTTPResponse {
    HTTPResponse(status: 303, headers: [("Location", location)])
  }
}

/// What a client may use up.
package struct HTTPServerLimits: Sendable {
  /// A longer body is answered with 413.
  package var bodyBytesMax = 64 * 1024
  /// Fields of a query or a form; more are answered with 400.
  package var fieldsMax = 256
  /// The request line and the headers; more are answered with 431.
  package var headerBytesMax = 16 * 1024
  /// Further connections wait to be accepted.
  package var connectionsMax = 1024
  /// A connection that is silent for longer is closed. At least a second.
  package var idleSeconds = 30

  package init() {}
}
