private import CPostgres
private import EventLoop
internal import Primitives

/// The keywords that libpq connects with: those of the URL, with the session's settings added.
struct ConnectionParameters: Sendable {
  private let keywords: [(keyword: String, value: Secret<String>)]
  /// Whether a host has to be looked up, so that starting to connect may block.
  let needsLookUp: Bool

  /// nil when `url` is no PostgreSQL URL (nor a keyword string); libpq's reason is not given, it may quote a password.
  init?(url: Secret<String>, configuration: DatabaseConfiguration) {
    guard var found = ConnectionParameters.parse(url) else { return nil }
    var options = found["options"].map { [$0] } ?? []
    options.append("-c statement_timeout=\(configuration.statementTimeout.microseconds / 1000)")
    options.append(
      "-c idle_in_transaction_session_timeout=\(configuration.idleInTransactionTimeout.microseconds / 1000)")
    options.append("-c TimeZone=UTC")
    if let schema = configuration.schema { options.append("-c search_path=\(ConnectionParameters.escaped(schema))") }
    found["options"] = options.joined(separator: " ")
    found["client_encoding"] = "UTF8"
    // A peer that has vanished is noticed within half a minute, whatever the kernel's own settings.
    let defaults = [
      "application_name": configuration.applicationName, "keepalives_idle": "10", "keepalives_interval": "5",
      "keepalives_count": "3", "tcp_user_timeout": "15000",
      // Kerberos is not used, and looking for its tickets blocks.
      "gssencmode": "disable",
    ]
    found.merge(defaults) { own, _ in own }
    let hosts = (found["host"] ?? "").split(separator: ",")
    needsLookUp =
      found["hostaddr"] == nil && hosts.contains { !$0.hasPrefix("/") && !ConnectionParameters.isLiteral($0) }
    keywords = found.map { ($0.key, Secret($0.value)) }
  }

  private static func isLiteral(_ host: Substring) -> Bool {
    host.hasPrefix("@") || SocketAddress(host: String(host), port: 0) != nil
  }

  private static func parse(_ url: Secret<String>) -> [String: String]? {
    var message: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(url.reveal(), &message) else {
      PQfreemem(message)
      return nil
    }
    defer { PQconninfoFree(options) }
    var found: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { found[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return found
  }

  /// The server splits options at spaces unless a backslash stands before them.
  private static func escaped(_ schema: String) -> String {
    var output = ""
    for character in "\"\(schema)\"" {
      if character == " " || character == "\\" { output.append("\\") }
      output.append(character)
    }
    return output
  }

  /// Begins to connect; the handle must be given to PQfinish. nil only when memory is out.
  func start() -> OpaquePointer? {
    withArrays { PQconnectStartParams($0, $1, 0) }
  }

  /// Connects and blocks until done.
  func connect() -> OpaquePointer? {
    withArrays { PQconnectdbParams($0, $1, 0) }
  }

  private func withArrays<Value>(
    _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Value
  ) -> Value {
    let names = CStrings(keywords.map(\.keyword), isTerminated: true)
    let values = CStrings(keywords.map { $0.value.reveal() }, isTerminated: true)
    return withExtendedLifetime((names, values)) { body(names.pointers, values.pointers) }
  }
}

/// Texts as C takes them, alive as long as this object.
final class CStrings {
  let pointers: [UnsafePointer<CChar>?]

  /// With `isTerminated`, a null pointer ends the list.
  init(_ texts: [String], isTerminated: Bool = false) {
    // Safety: freed in `deinit`, never written after this.
    pointers =
      texts.map { text in
        let bytes = text.utf8CString
        let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        return UnsafePointer(copy.baseAddress)
      } + (isTerminated ? [nil] : [])
  }

  deinit {
    for pointer in pointers { pointer?.deallocate() }
  }
}
