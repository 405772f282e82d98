internal import API
internal import Primitives
package import RPC
package import Sealing
internal import Synchronization

extension AccessTokenClaims {
  package var caller: AccountCaller {
    AccountCaller(accountID: accountID, sessionID: sessionID, emailVerified: emailVerified)
  }
}

/// Verifies access tokens with identity's published keys. A token is verified once and remembered until it ends, so
/// that the signature costs nothing on the calls that follow.
package final class AccessTokens: Sendable {
  /// Where the keys come from: identity has its own, every other service asks for them.
  package typealias KeySource = @Sendable () async throws -> (keys: [VerifyingKey], issuer: String)

  private struct State {
    var verifier: AccessTokenVerifier?
    var fetchTime: Monotonic?
    var known: [String: AccessTokenClaims] = [:]
  }

  private let state = Mutex(State())
  private let source: KeySource
  private let knownMax = 10_000
  /// How long a token that names an unknown key does not make us ask again.
  private let fetchPause: Duration = .seconds(10)

  package init(source: @escaping KeySource) {
    self.source = source
  }

  /// Keys from the identity service.
  package convenience init(identity: Channel) {
    let client = IdentityV1.DirectoryServiceClient(identity)
    self.init {
      let response = try await client.getSigningKeys(.init(), CallOptions(timeout: .seconds(5)))
      return (try response.keys.map { try VerifyingKey(raw: $0.publicKey) }, response.issuer)
    }
  }

  /// The claims of a token that was verified before and has not ended; nil when it must be verified.
  func cached(_ token: String) throws -> AccessTokenClaims? {
    let (claims, verifier) = state.withLock { ($0.known[token], $0.verifier) }
    let now = Instant.now()
    if let claims, now < claims.expires { return claims }
    guard let verifier else { return nil }
    do {
      let claims = try verifier.verify(token, now: now)
      remember(token, claims)
      return claims
    } catch {
      // A key that is not known may be a new one.
      if (error.cause as? AccessTokenFault) == .key { return nil }
      throw error
    }
  }

  /// Verifies a token, fetching keys first when it has none or the token names a new one. UNAVAILABLE when identity
  /// is out of reach and no key is known.
  func verify(_ token: String) async throws -> AccessTokenClaims {
    let (verifier, fetchTime) = state.withLock { ($0.verifier, $0.fetchTime) }
    let now = Monotonic.now()
    if verifier == nil || fetchTime.map({ $0.advanced(by: fetchPause) < now }) ?? true {
      // Noted before it is answered: tokens with made-up key names must not become as many calls to identity.
      state.withLock { $0.fetchTime = now }
      do {
        let (keys, issuer) = try await source()
        state.withLock { $0.verifier = AccessTokenVerifier(keys: keys, issuer: issuer) }
      } catch {
        if verifier == nil { throw ServiceError.unavailable("Sign-in cannot be checked just now.", cause: error) }
      }
    }
    guard let verifier = state.withLock({ $0.verifier }) else {
      throw ServiceError.unavailable("Sign-in cannot be checked just now.")
    }
    let claims = try verifier.verify(token, now: .now())
    remember(token, claims)
    return claims
  }

  private func remember(_ token: String, _ claims: AccessTokenClaims) {
    state.withLock { state in
      if state.known.count >= knownMax {
        let now = Instant.now()
        state.known = state.known.filter { $0.value.expires > now }
        if state.known.count >= knownMax { state.known.removeAll() }
      }
      state.known[token] = claims
    }
  }
}
