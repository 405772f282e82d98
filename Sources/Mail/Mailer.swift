private import CCurl
package import EventLoop
package import Primitives
private import Synchronization

/// Sends mail by SMTP. Connections are kept open between mails and every send runs on the pool, so at most as many
/// connections exist as the pool has threads.
package final class Mailer: Sendable {
  package struct Credentials: Sendable {
    package let user: String
    package let password: Secret<String>

    package init(user: String, password: Secret<String>) {
      self.user = user
      self.password = password
    }
  }

  private let settings: SMTPSettings
  private let pool: BlockingPool
  private let idle = Mutex<[SMTPConnection]>([])

  /// `url` is `smtp://host:port` (plain), `smtp+starttls://host:port` (TLS is demanded, never skipped) or
  /// `smtps://host:port` (TLS from the first byte). `helloName` is how the client names itself; `caPath` a file of
  /// roots in place of the system's. Connecting takes at most 10 seconds, a whole send, once it has a thread,
  /// `sendTimeout`. Throws `.invalid` for any other URL.
  package init(
    url: String, credentials: Credentials? = nil, helloName: String? = nil, caPath: String? = nil,
    sendTimeout: Duration = .seconds(60), pool: BlockingPool
  ) throws(MailError) {
    settings = try SMTPSettings(
      url: url, credentials: credentials, helloName: helloName, caPath: caPath, sendTimeout: sendTimeout)
    self.pool = pool
  }

  /// Returns when the server has taken the mail. The first try that fails after the body was sent leaves it open
  /// whether the mail went out: a repeat carries the same Message-ID.
  package func send(_ message: MailMessage) async throws(MailError) {
    let lines = try MailHeaders.lines(for: message)
    let sender = try MailHeaders.path(message.from, field: "from")
    let recipient = try MailHeaders.path(message.to, field: "to")
    let result: Result<Void, MailError>
    do {
      result = try await pool.run { [self] in
        guard let connection = idle.withLock({ $0.popLast() }) ?? SMTPConnection(settings) else {
          return .failure(.temporary(code: nil, text: "no memory for a connection"))
        }
        defer { idle.withLock { $0.append(connection) } }
        return connection.send(
          sender: sender, recipient: recipient, headers: lines, text: message.textBody, html: message.htmlBody)
      }
    } catch {
      throw .temporary(code: nil, text: "the mail pool is busy")
    }
    try result.get()
  }
}

/// Where and how to deliver.
struct SMTPSettings: Sendable {
  let url: String
  let demandsTLS: Bool
  let credentials: Mailer.Credentials?
  let caPath: String?
  let sendTimeout: Duration

  init(
    url: String, credentials: Mailer.Credentials?, helloName: String?, caPath: String?, sendTimeout: Duration
  ) throws(MailError) {
    guard let end = url.firstRange(of: "://") else { throw .invalid(field: "url") }
    let scheme = url[..<end.lowerBound]
    let server = url[end.upperBound...]
    guard ["smtp", "smtps", "smtp+starttls"].contains(scheme), !server.isEmpty,
      server.utf8.allSatisfy({ 0x21...0x7E ~= $0 && !"/?#@\\".utf8.contains($0) }),
      (helloName ?? "").utf8.allSatisfy({ 0x21...0x7E ~= $0 && !"/?#@\\%".utf8.contains($0) })
    else { throw .invalid(field: "url") }
    self.url = "\(scheme == "smtps" ? "smtps" : "smtp")://\(server)/\(helloName ?? "")"
    demandsTLS = scheme != "smtp"
    self.credentials = credentials
    self.caPath = caPath
    self.sendTimeout = sendTimeout
  }
}

extension String {
  /// Where `text` first stands.
  fileprivate func firstRange(of text: String) -> Range<String.Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
      start = index(after: start)
    }
    return nil
  }
}

/// One libcurl handle and the connection it keeps.
///
/// Safety: the mailer lends a connection to one thread at a time, and libcurl allows a handle to move between threads.
final class SMTPConnection: @unchecked Sendable {
  private static let globalInit = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

  private let settings: SMTPSettings
  private let handle: UnsafeMutableRawPointer
  /// The last line with which the server refused something.
  private var refusal: [UInt8] = []

  init?(_ settings: SMTPSettings) {
    guard SMTPConnection.globalInit == CURLE_OK, let handle = curl_easy_init() else { return nil }
    self.settings = settings
    self.handle = handle
  }

  deinit { curl_easy_cleanup(handle) }

  func send(
    sender: String, recipient: String, headers: [String], text: String, html: String?
  ) -> Result<Void, MailError> {
    // Forgets the options of the last mail and keeps the connection.
    curl_easy_reset(handle)
    refusal = []
    let recipients = curl_slist_append(nil, recipient)
    defer { curl_slist_free_all(recipients) }
    var fields = curl_slist_append(nil, "Content-Type: multipart/alternative")
    for header in headers { fields = curl_slist_append(fields, header) ?? fields }
    defer { curl_slist_free_all(fields) }
    guard let mime = curl_mime_init(handle) else { return .failure(.temporary(code: nil, text: "no memory")) }
    defer { curl_mime_free(mime) }
    let code = firstFailure([
      { self.addPart(text, "text/plain; charset=utf-8", to: mime) },
      { html.map { self.addPart($0, "text/html; charset=utf-8", to: mime) } ?? CURLE_OK },
      { self.configure() },
      { curl_set_text(self.handle, CURLOPT_MAIL_FROM, sender) },
      { curl_set_list(self.handle, CURLOPT_MAIL_RCPT, recipients) },
      { curl_set_list(self.handle, CURLOPT_HTTPHEADER, fields) },
      { curl_set_mime(self.handle, mime) },
      { curl_easy_perform(self.handle) },
    ])
    return code == CURLE_OK ? .success(()) : .failure(failure(code))
  }

  private func configure() -> CURLcode {
    let context = Unmanaged.passUnretained(self).toOpaque()
    return firstFailure([
      { curl_set_text(self.handle, CURLOPT_URL, self.settings.url) },
      { curl_set_text(self.handle, CURLOPT_PROTOCOLS_STR, "smtp,smtps") },
      { curl_set_text(self.handle, CURLOPT_PROXY, "") },
      { curl_set_long(self.handle, CURLOPT_NOSIGNAL, 1) },
      { curl_set_long(self.handle, CURLOPT_CONNECTTIMEOUT_MS, 10_000) },
      { curl_set_long(self.handle, CURLOPT_TIMEOUT_MS, Int(self.settings.sendTimeout.microseconds / 1000)) },
      // Mail servers hang up on idle clients after minutes.
      { curl_set_long(self.handle, CURLOPT_MAXAGE_CONN, 60) },
      { curl_set_long(self.handle, CURLOPT_USE_SSL, self.settings.demandsTLS ? 3 : 0) },
      { self.settings.caPath.map { curl_set_text(self.handle, CURLOPT_CAINFO, $0) } ?? CURLE_OK },
      { self.settings.credentials.map { curl_set_text(self.handle, CURLOPT_USERNAME, $0.user) } ?? CURLE_OK },
      {
        self.settings.credentials.map { curl_set_text(self.handle, CURLOPT_PASSWORD, $0.password.reveal()) }
          ?? CURLE_OK
      },
      { curl_set_write(self.handle, { _, size, count, _ in size * count }, nil) },
      {
        curl_set_header(
          self.handle,
          { bytes, size, count, context in
            guard let bytes, let context else { return size * count }
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            // A refusal; the good-bye that follows it must not hide it.
            if line.first == UInt8(ascii: "4") || line.first == UInt8(ascii: "5") {
              Unmanaged<SMTPConnection>.fromOpaque(context).takeUnretainedValue().refusal = Array(line.prefix(500))
            }
            return size * count
          }, context)
      },
    ])
  }

  private func firstFailure(_ steps: [() -> CURLcode]) -> CURLcode {
    for step in steps {
      let code = step()
      if code != CURLE_OK { return code }
    }
    return CURLE_OK
  }

  private func addPart(_ body: String, _ type: String, to mime: OpaquePointer) -> CURLcode {
    guard let part = curl_mime_addpart(mime) else { return CURLE_OUT_OF_MEMORY }
    let bytes = SMTPConnection.canonicalLines(body)
    return firstFailure([
      { curl_mime_type(part, type) },
      { curl_mime_encoder(part, "quoted-printable") },
      {
        bytes.withUnsafeBytes {
          curl_mime_data(part, $0.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
        }
      },
    ])
  }

  /// Every line break as CR LF, so that quoted-printable keeps them as line breaks.
  private static func canonicalLines(_ text: String) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(text.utf8.count + text.utf8.count / 16 + 2)
    var previous: UInt8 = 0
    for byte in text.utf8 {
      switch byte {
      case 13: output += [13, 10]
      case 10: if previous != 13 { output += [13, 10] }
      default: output.append(byte)
      }
      previous = byte
    }
    return output.isEmpty ? [13, 10] : output
  }

  private func failure(_ code: CURLcode) -> MailError {
    let status = Int(curl_response_code(handle))
    let reply = SMTPConnection.withoutAddresses(refusal)
    let text = reply.isEmpty ? String(cString: curl_easy_strerror(code)) : reply
    // 530 to 538 say that we are not let in: that is our setting, and no verdict on the mail.
    let isRefused = code == CURLE_SEND_ERROR || code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_RECV_ERROR
    if isRefused, (500...599).contains(status), !(530...538).contains(status) {
      return .permanent(code: status, text: text)
    }
    return .temporary(code: status >= 400 ? status : nil, text: text)
  }

  /// The answer's printable words; a word with `@` becomes `[address]`.
  private static func withoutAddresses(_ answer: [UInt8]) -> String {
    let words = String(decoding: answer, as: UTF8.self).split {
      !$0.isASCII || $0.isWhitespace || $0.asciiValue! < 0x20
    }
    return words.map { $0.contains("@") ? "[address]" : String($0) }.joined(separator: " ")
  }
}
