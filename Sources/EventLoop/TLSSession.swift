internal import COpenSSL

/// One connection's TLS state over a non-blocking socket, driven by the socket's readiness.
///
/// Safety: belongs to one stream, so to one thread; `ssl` is freed exactly once, by `free`, and not used after it.
final class TLSSession {
  /// What a step came to.
  enum Outcome {
    case done(Int)
    case wantsRead
    case wantsWrite
    /// The peer has closed its side in order.
    case ended
    case failed(StreamError)
  }

  private var ssl: OpaquePointer?

  /// Takes over `ssl`.
  init(_ ssl: OpaquePointer) {
    self.ssl = ssl
  }

  deinit {
    free()
  }

  func free() {
    if let ssl { SSL_free(ssl) }
    ssl = nil
  }

  func handshake() -> Outcome {
    guard let ssl else { return .ended }
    ERR_clear_error()
    let result = SSL_do_handshake(ssl)
    return result == 1 ? .done(0) : outcome(ssl, result)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
    guard let ssl else { return .ended }
    ERR_clear_error()
    var count = 0
    let result = SSL_read_ex(ssl, buffer.baseAddress, buffer.count, &count)
    return result == 1 ? .done(count) : outcome(ssl, result)
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    guard let ssl else { return .ended }
    ERR_clear_error()
    var count = 0
    let result = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &count)
    return result == 1 ? .done(count) : outcome(ssl, result)
  }

  /// Sends the closing alert.
  func close() {
    guard let ssl else { return }
    ERR_clear_error()
    SSL_shutdown(ssl)
    ERR_clear_error()
  }

  private func outcome(_ ssl: OpaquePointer, _ result: Int32) -> Outcome {
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .wantsRead
    case SSL_ERROR_WANT_WRITE: return .wantsWrite
    case SSL_ERROR_ZERO_RETURN: return .ended
    case SSL_ERROR_SYSCALL: return .failed(.truncated)
    default:
      let code = ERR_peek_error()
      if ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING {
        ERR_clear_error()
        return .failed(.truncated)
      }
      let verification = SSL_get_verify_result(ssl)
      if verification != X509_V_OK {
        ERR_clear_error()
        return .failed(.tls("certificate: \(String(cString: X509_verify_cert_error_string(verification)))"))
      }
      return .failed(.tls(TLSSession.takeErrorText()))
    }
  }

  /// The reason of the oldest error in this thread's queue, which is emptied.
  static func takeErrorText() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard let reason = ERR_reason_error_string(code) else { return "error \(code)" }
    return String(cString: reason)
  }

  /// The one URI name of the peer's verified certificate; nil without a certificate, or with none or several.
  var peerIdentity: String? {
    guard let ssl, SSL_get_verify_result(ssl) == X509_V_OK, let certificate = SSL_get1_peer_certificate(ssl) else {
      return nil
    }
    defer { X509_free(certificate) }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { text in
      guard openssl_uri_names(certificate, text.baseAddress, text.count) == 1, let base = text.baseAddress else {
        return nil
      }
      return String(validatingCString: base)
    }
  }

  var negotiatedProtocol: String? {
    guard let ssl else { return nil }
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &length)
    guard let name, length > 0 else { return nil }
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }
}
