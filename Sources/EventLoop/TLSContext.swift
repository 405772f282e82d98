internal import COpenSSL
private import Synchronization

/// Certificates and rules for the TLS side of listeners or connections: TLS 1.3 only, ALPN `h2`, no resumption.
package final class TLSContext: Sendable {
  private enum Role: Sendable {
    case server(certificatePath: String, keyPath: String, caPath: String?)
    case client(caPath: String?, certificatePath: String?, keyPath: String?)
  }

  private let role: Role
  private let current: Mutex<Handle>

  private init(_ role: Role) throws(StreamError) {
    TLSLibrary.prepare()
    self.role = role
    current = Mutex(try Self.load(role))
  }

  /// PEM files. With `caPath` a client certificate is asked for, not required; one that is shown must verify against
  /// it, and its URI name becomes the stream's `peerIdentity`. The certificate file holds the chain, leaf first.
  package static func server(certificatePath: String, keyPath: String, caPath: String?) throws -> TLSContext {
    try TLSContext(.server(certificatePath: certificatePath, keyPath: keyPath, caPath: caPath))
  }

  /// PEM files. The server must verify against `caPath` (nil: the system's authorities). The certificate and key are
  /// shown when the server asks.
  package static func client(
    caPath: String?, certificatePath: String? = nil, keyPath: String? = nil
  ) throws -> TLSContext {
    try TLSContext(.client(caPath: caPath, certificatePath: certificatePath, keyPath: keyPath))
  }

  /// Reads the files again, for connections that begin after it. On an error the present ones stay in use.
  package func reload() throws {
    let fresh = try Self.load(role)
    current.withLock { $0 = fresh }
  }

  /// Begins a session on a connected, or connecting, socket; `peer` is nil on the server's side.
  func session(descriptor: Int32, peer: PeerName?) throws(StreamError) -> TLSSession {
    let handle = current.withLock { $0 }
    ERR_clear_error()
    guard let ssl = SSL_new(handle.context) else { throw .tls(TLSSession.takeErrorText()) }
    let session = TLSSession(ssl)
    guard SSL_set_fd(ssl, descriptor) == 1 else { throw .tls(TLSSession.takeErrorText()) }
    switch role {
    case .server:
      SSL_set_accept_state(ssl)
    case .client:
      SSL_set_connect_state(ssl)
      if case .server(let name) = peer { try Self.expect(name, ssl) }
    }
    return session
  }

  private static func expect(_ name: String, _ ssl: OpaquePointer) throws(StreamError) {
    let parameters = SSL_get0_param(ssl)
    X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    if SocketAddress(host: name, port: 0) != nil {
      guard X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1 else { throw .tls(TLSSession.takeErrorText()) }
    } else {
      guard X509_VERIFY_PARAM_set1_host(parameters, name, 0) == 1, openssl_set_server_name(ssl, name) == 1 else {
        throw .tls(TLSSession.takeErrorText())
      }
    }
  }

  // MARK: Loading

  /// Safety: `@unchecked Sendable` because an SSL_CTX is counted and locked by OpenSSL and is not changed after
  /// `load`; sessions hold their own reference.
  private final class Handle: @unchecked Sendable {
    let context: OpaquePointer

    init(_ context: OpaquePointer) { self.context = context }

    deinit { SSL_CTX_free(context) }
  }

  private static func load(_ role: Role) throws(StreamError) -> Handle {
    ERR_clear_error()
    let method: OpaquePointer? =
      switch role {
      case .server: TLS_server_method()
      case .client: TLS_client_method()
      }
    guard let context = SSL_CTX_new(method) else { throw .tls(TLSSession.takeErrorText()) }
    let handle = Handle(context)
    try check(openssl_context_prepare(context), "TLS 1.3")
    openssl_refuse_passwords(context)
    switch role {
    case .server(let certificatePath, let keyPath, let caPath):
      try use(context, certificatePath, keyPath)
      if let caPath {
        try check(SSL_CTX_load_verify_file(context, caPath), caPath)
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(caPath))
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
      }
      SSL_CTX_set_alpn_select_cb(context, selectHTTP2, nil)
    case .client(let caPath, let certificatePath, let keyPath):
      if let caPath {
        try check(SSL_CTX_load_verify_file(context, caPath), caPath)
      } else {
        try check(SSL_CTX_set_default_verify_paths(context), "the system's authorities")
      }
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
      if let certificatePath, let keyPath { try use(context, certificatePath, keyPath) }
      let offer: [UInt8] = [2] + Array("h2".utf8)
      SSL_CTX_set_alpn_protos(context, offer, UInt32(offer.count))
    }
    return handle
  }

  private static func use(_ context: OpaquePointer, _ certificatePath: String, _ keyPath: String) throws(StreamError) {
    try check(SSL_CTX_use_certificate_chain_file(context, certificatePath), certificatePath)
    try check(SSL_CTX_use_PrivateKey_file(context, keyPath, SSL_FILETYPE_PEM), keyPath)
    try check(SSL_CTX_check_private_key(context), keyPath)
  }

  private static func check(_ result: Int32, _ what: String) throws(StreamError) {
    guard result == 1 else { throw .tls("\(what): \(TLSSession.takeErrorText())") }
  }
}

/// Agrees on `h2`, or ends the handshake when the client offers protocols and that is not among them.
private let selectHTTP2: SSL_CTX_alpn_select_cb_func = { _, output, outputLength, input, inputLength, _ in
  guard let output, let outputLength, let input else { return SSL_TLSEXT_ERR_ALERT_FATAL }
  var offset = 0
  // Safety: `input` holds `inputLength` bytes, which outlive this call; OpenSSL copies what `output` points to.
  while offset < Int(inputLength) {
    let length = Int(input[offset])
    guard offset + 1 + length <= Int(inputLength) else { break }
    if length == 2, input[offset + 1] == UInt8(ascii: "h"), input[offset + 2] == UInt8(ascii: "2") {
      output.pointee = input + offset + 1
      outputLength.pointee = 2
      return SSL_TLSEXT_ERR_OK
    }
    offset += 1 + length
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// Whom a client expects at the other end.
enum PeerName: Sendable, Equatable {
  /// A DNS name or an address literal, as in the certificate's subject alternative names.
  case server(String)
  /// A URI such as `spiffe://afterthoughts/vault`.
  case identity(String)
}
