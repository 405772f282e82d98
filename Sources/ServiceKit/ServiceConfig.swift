package import EventLoop
package import Primitives
package import Sealing

/// The settings that every service with a database shares.
package struct ServiceConfig: Sendable {
  package let transport: TransportConfig
  /// Where the service listens.
  package let listen: SocketAddress
  package let databaseURL: Secret<String>
  package let keys: KeyEncryptionKeys
  package let pageTokenKey: Secret<[UInt8]>
  /// What links in mails begin with, without a slash at the end.
  package let publicURL: String

  /// `LISTEN`, `DATABASE_URL`, `KEY_ENCRYPTION_KEYS` (lines `id base64`), `PAGE_TOKEN_KEY` (base64 of 32 bytes),
  /// `PUBLIC_URL`, and those of `TransportConfig`. nil when something is wrong: `configuration.faults` says what.
  package init?(_ configuration: inout Configuration) {
    transport = TransportConfig(&configuration)
    let listenText = configuration.text("LISTEN")
    let listen = SocketAddress(listenText)
    if listen == nil, !listenText.isEmpty {
      configuration.fault("LISTEN: must be address:port, such as 127.0.0.1:7101")
    }
    databaseURL = configuration.secret("DATABASE_URL")
    var keys: KeyEncryptionKeys?
    do {
      keys = try KeyEncryptionKeys(parsing: configuration.secret("KEY_ENCRYPTION_KEYS"))
    } catch {
      configuration.fault("KEY_ENCRYPTION_KEYS: \(error)")
    }
    let pageTokenKey = Base64.decode(configuration.text("PAGE_TOKEN_KEY")) ?? []
    if pageTokenKey.count != 32 { configuration.fault("PAGE_TOKEN_KEY: must be 32 bytes in base64") }
    self.pageTokenKey = Secret(pageTokenKey)
    var publicURL = configuration.text("PUBLIC_URL")
    while publicURL.hasSuffix("/") { publicURL.removeLast() }
    self.publicURL = publicURL
    if transport.tls == nil, let listen, !listen.isLoopback {
      configuration.fault("ALLOW_PLAINTEXT: is only for a loopback address")
    }
    guard let listen, let keys, configuration.faults.isEmpty else { return nil }
    self.listen = listen
    self.keys = keys
  }
}
