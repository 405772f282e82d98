internal import COpenSSL

/// OpenSSL as a whole.
package enum TLSLibrary {
  /// Keeps `exit` from taking OpenSSL down while loops are still inside of it, which would end a good process with a
  /// signal. Called before anything else uses OpenSSL; further calls do nothing.
  package static func prepare() { _ = isPrepared }

  private static let isPrepared = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1
}
