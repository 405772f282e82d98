/// Certificates and rules for the TLS side of listeners or connections.
package final class TLSContext: Sendable {
  func session(descriptor: Int32, peer: PeerName?) throws(StreamError) -> TLSSession { throw .tls("not built") }
}

/// Whom a client expects at the other end.
enum PeerName: Sendable, Equatable {
  /// A DNS name or an address literal, as in the certificate's subject alternative names.
  case server(String)
  /// A URI such as `spiffe://afterthoughts/vault`.
  case identity(String)
}
