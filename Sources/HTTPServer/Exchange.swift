internal import CMicroHTTPD
private import EventLoop
private import Primitives

/// One request on its way: what has come of it, then the answer.
///
/// Safety: `@unchecked Sendable` because every variable is touched on the server's loop only; `connection` is valid
/// until libmicrohttpd reports the request as completed, which is when the daemon calls `complete`.
final class Exchange: @unchecked Sendable {
  enum State {
    case reading
    /// The connection is suspended and the handler runs.
    case handling
    /// The answer waits for libmicrohttpd to ask for it.
    case answered(HTTPResponse)
    case queued
    case completed
  }

  /// A body beyond this is not even read to its end.
  private static let discardedBytesMax = 1 << 20

  private let target: String
  private let limits: HTTPServerLimits
  private(set) var connection: OpaquePointer?
  private var isHead = false
  private var method = ""
  private var body: [UInt8] = []
  private var discardedBytes = 0
  var state = State.reading

  init(target: String, limits: HTTPServerLimits) {
    self.target = target
    self.limits = limits
  }

  func complete() {
    state = .completed
    connection = nil
  }

  /// The headers are here. A response refuses the request at once.
  func begin(_ connection: OpaquePointer, method: String) -> HTTPResponse? {
    self.connection = connection
    switch method {
    case "GET", "POST": self.method = method
    case "HEAD": self.method = "GET"
    default:
      var refusal = HTTPResponse.text("This method is not supported here.\n", status: 405)
      refusal.headers.append(("Allow", "GET, HEAD, POST"))
      return refusal
    }
    // Two ways to say how long the body is are how requests are smuggled past a proxy (RFC 9112 §6.3).
    if header("Content-Length") != nil, header("Transfer-Encoding") != nil { return Self.malformed }
    if let length = header("Content-Length"), UInt64(length).map({ $0 > UInt64(limits.bodyBytesMax) }) ?? true {
      return Self.tooLarge
    }
    return nil
  }

  var hasBegun: Bool { connection != nil }

  /// False when the client has sent so much too much that the connection is to be cut.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if discardedBytes == 0, body.count + bytes.count <= limits.bodyBytesMax {
      body.append(contentsOf: bytes)
      return true
    }
    discardedBytes += bytes.count
    body = []
    return discardedBytes <= Self.discardedBytesMax
  }

  /// The body is here: the request, or the response that refuses it.
  func request() -> Result<HTTPRequest, Refusal> {
    guard discardedBytes == 0 else { return .failure(Refusal(response: Self.tooLarge)) }
    guard let connection, let peer = microhttpd_peer(connection),
      let peerAddress = SocketAddress(socketAddress: UnsafeRawPointer(peer))
    else { return .failure(Refusal(response: Self.malformed)) }
    let (rawPath, rawQuery) = Self.split(target)
    guard rawPath.first == "/", let path = FormEncoding.decodePath(rawPath) else {
      return .failure(Refusal(response: Self.malformed))
    }
    let segments = rawPath.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
      .compactMap { FormEncoding.decodePath($0) }
    let headers = readHeaders(connection)
    let isForm = headers["content-type"].map(Self.isForm) ?? false
    guard let query = FormEncoding.decode(rawQuery.utf8, fieldsMax: limits.fieldsMax),
      let form = isForm ? FormEncoding.decode(body, fieldsMax: limits.fieldsMax) : []
    else { return .failure(Refusal(response: Self.malformed)) }
    return .success(
      HTTPRequest(
        method: method, rawPath: String(rawPath), path: path, segments: segments,
        query: FormEncoding.dictionary(query), headers: headers, form: FormEncoding.dictionary(form),
        cookies: FormEncoding.dictionary(headers["cookie"].map(FormEncoding.decodeCookies) ?? []), body: body,
        peerAddress: peerAddress))
  }

  struct Refusal: Error {
    let response: HTTPResponse
  }

  private static let tooLarge = HTTPResponse.text("The request is too large.\n", status: 413)
  private static let malformed = HTTPResponse.text("The request is malformed.\n", status: 400)

  /// Path and query of a request target in origin or absolute form (RFC 9112 §3.2).
  static func split(_ target: String) -> (path: Substring, query: Substring) {
    var rest = target[...]
    for scheme in ["http://", "https://"] where rest.lowercased().hasPrefix(scheme) {
      rest = rest.dropFirst(scheme.count).drop { $0 != "/" && $0 != "?" }
      if rest.first != "/" { return ("/", rest.dropFirst()) }
    }
    guard let mark = rest.firstIndex(of: "?") else { return (rest, "") }
    return (rest[..<mark], rest[rest.index(after: mark)...])
  }

  private static func isForm(_ contentType: String) -> Bool {
    let type = contentType.prefix { $0 != ";" && $0 != " " }
    return type.lowercased() == "application/x-www-form-urlencoded"
  }

  private func header(_ name: String) -> String? {
    connection.flatMap { MHD_lookup_connection_value($0, MHD_ValueKind.HEADER_KIND, name) }.map { String(cString: $0) }
  }

  private func readHeaders(_ connection: OpaquePointer) -> [String: String] {
    var headers: [String: String] = [:]
    // Safety: the iterator runs inside this call only, so the pointer to the local dictionary is valid throughout.
    withUnsafeMutablePointer(to: &headers) { pointer in
      _ = MHD_get_connection_values(
        connection, MHD_ValueKind.HEADER_KIND,
        { context, _, name, value in
          guard let context, let name else { return .YES }
          let headers = context.assumingMemoryBound(to: [String: String].self)
          let key = String(cString: name).lowercased()
          let text = value.map { String(cString: $0) } ?? ""
          if let earlier = headers.pointee[key] {
            headers.pointee[key] = earlier + (key == "cookie" ? "; " : ", ") + text
          } else {
            headers.pointee[key] = text
          }
          return .YES
        }, pointer)
    }
    return headers
  }
}
