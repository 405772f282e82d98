private import COpenSSL

/// One connection's TLS state.
final class TLSSession {
  /// What a step came to.
  enum Outcome {
    case done(Int)
    case wantsRead
    case wantsWrite
    /// The peer has closed its side.
    case ended
    case failed(StreamError)
  }

  func handshake() -> Outcome { .failed(.tls("not built")) }
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome { .failed(.tls("not built")) }
  func write(_ bytes: UnsafeRawBufferPointer) -> Outcome { .failed(.tls("not built")) }
  func close() {}
  func free() {}
  var holdsInput: Bool { false }
  var peerIdentity: String? { nil }
  var negotiatedProtocol: String? { nil }
}
