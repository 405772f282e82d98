internal import CLinux
internal import Glibc

/// Why a stream could not be opened or ended early. For the log: no text here is meant for a caller.
package enum StreamError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A system call failed.
  case system(call: String, code: Int32)
  case resolution(host: String, reason: String)
  case timedOut
  /// The handshake or a record failed; OpenSSL's reason.
  case tls(String)
  /// The peer's certificate is valid but is not the one that was asked for.
  case wrongIdentity(String)
  /// The peer ended the connection without TLS's closing alert.
  case truncated
  /// `abort` was called, or the loop ended.
  case aborted

  /// A system call's name and the present errno.
  static func last(_ call: String) -> StreamError { .system(call: call, code: errno) }

  package var description: String {
    switch self {
    case .system(let call, let code): "\(call): \(String(cString: strerror(code)))"
    case .resolution(let host, let reason): "resolving \(host): \(reason)"
    case .timedOut: "timed out"
    case .tls(let reason): "TLS: \(reason)"
    case .wrongIdentity(let identity): "the peer is \(identity)"
    case .truncated: "the peer ended the connection without closing TLS"
    case .aborted: "aborted"
    }
  }
}
