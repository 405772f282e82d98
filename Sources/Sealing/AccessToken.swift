package import Primitives

/// What a verified access token says.
package struct AccessTokenClaims: Sendable, Equatable {
  package let accountID: Identifier
  package let sessionID: Identifier
  package let emailVerified: Bool
  package let issued: Instant
  package let expires: Instant
}

/// The one form of our access tokens: a JWT (RFC 7519) signed with EdDSA (RFC 8037) whose header and claims are
/// written in one fixed order without spaces. Nothing else is read, so no general JSON reader is needed.
private enum AccessTokenForm {
  static let textLengthMax = 1024
  static let lifetimeMax: Int64 = 900
  static let skew: Int64 = 60

  static func header(keyID: String) -> String { #"{"alg":"EdDSA","kid":"\#(keyID)","typ":"JWT"}"# }

  static func claimsStart(issuer: String, audience: String) -> [UInt8] {
    var text = Array(#"{"iss":"#.utf8)
    JSONText.append(issuer, to: &text)
    text.append(contentsOf: #","aud":"#.utf8)
    JSONText.append(audience, to: &text)
    return text
  }
}

/// Makes access tokens; identity holds the only one.
package struct AccessTokenIssuer: Sendable {
  private let key: SigningKey
  private let headerText: String
  private let claimsStart: [UInt8]

  package init(key: SigningKey, issuer: String, audience: String = "afterthoughts") {
    self.key = key
    headerText = Base64.encode(AccessTokenForm.header(keyID: key.verifyingKey.keyID).utf8)
    claimsStart = AccessTokenForm.claimsStart(issuer: issuer, audience: audience)
  }

  /// A token that is good from `now` for `lifetime`, whole seconds, at most 15 minutes.
  package func issue(
    account: Identifier, session: Identifier, emailVerified: Bool, now: Instant, lifetime: Duration = .seconds(600)
  ) throws(SealingError) -> Secret<String> {
    let issued = now.seconds
    let expires = issued + min(lifetime.components.seconds, AccessTokenForm.lifetimeMax)
    let rest = #","sub":"\#(account)","sid":"\#(session)","ev":\#(emailVerified),"iat":\#(issued),"exp":\#(expires)}"#
    let signed = headerText + "." + Base64.encode(claimsStart + Array(rest.utf8))
    return Secret(signed + "." + Base64.encode(try key.sign(Array(signed.utf8))))
  }
}

/// Reads access tokens with identity's published keys. Clocks may differ by 60 seconds.
package struct AccessTokenVerifier: Sendable {
  private let keys: [String: VerifyingKey]
  private let claimsStart: [UInt8]

  package init(keys: [VerifyingKey], issuer: String, audience: String = "afterthoughts") {
    self.keys = Dictionary(keys.map { ($0.keyID, $0) }, uniquingKeysWith: { first, _ in first })
    claimsStart = AccessTokenForm.claimsStart(issuer: issuer, audience: audience)
  }

  /// UNAUTHENTICATED with the reason TOKEN_EXPIRED for a genuine token past its time, TOKEN_INVALID for all else. The
  /// cause (an `AccessTokenFault`) is for the log.
  package func verify(_ token: String, now: Instant) throws(ServiceError) -> AccessTokenClaims {
    do {
      return try claims(of: token, now: now.seconds)
    } catch {
      let reason = error == .expired ? "TOKEN_EXPIRED" : "TOKEN_INVALID"
      throw ServiceError(.unauthenticated, "Sign in and try again.", reason: reason, cause: error)
    }
  }

  private func claims(of token: String, now: Int64) throws(AccessTokenFault) -> AccessTokenClaims {
    guard token.utf8.count <= AccessTokenForm.textLengthMax else { throw .form }
    let segments = token.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
    guard segments.count == 3, let header = Base64.decode(segments[0]), let body = Base64.decode(segments[1]),
      let signature = Base64.decode(segments[2]), Base64.encode(signature) == segments[2]
    else { throw .form }

    let keyID = try keyID(header)
    guard let key = keys[keyID] else { throw .key }
    let signed = Array(token.utf8.prefix(segments[0].utf8.count + 1 + segments[1].utf8.count))
    guard key.isValid(signature, for: signed) else { throw .signature }
    let (account, session, emailVerified, issued, expires) = try read(body)
    guard issued < expires, expires - issued <= AccessTokenForm.lifetimeMax,
      issued <= now + AccessTokenForm.skew
    else { throw .time }
    guard now < expires + AccessTokenForm.skew else { throw .expired }
    return AccessTokenClaims(
      accountID: account, sessionID: session, emailVerified: emailVerified, issued: Instant(seconds: issued),
      expires: Instant(seconds: expires))
  }

  private func keyID(_ header: [UInt8]) throws(AccessTokenFault) -> String {
    var scanner = Scanner(rest: header[...])
    try scanner.skip(#"{"alg":"EdDSA","kid":""#.utf8)
    let keyID = String(decoding: scanner.take(16), as: UTF8.self)
    try scanner.skip(#"","typ":"JWT"}"#.utf8)
    guard scanner.rest.isEmpty else { throw .form }
    return keyID
  }

  private func read(
    _ body: [UInt8]
  ) throws(AccessTokenFault) -> (
    account: Identifier, session: Identifier, emailVerified: Bool, issued: Int64, expires: Int64
  ) {
    var scanner = Scanner(rest: body[...])
    try scanner.skip(claimsStart)
    try scanner.skip(#","sub":""#.utf8)
    let account = Identifier(String(decoding: scanner.take(36), as: UTF8.self))
    try scanner.skip(#"","sid":""#.utf8)
    let session = Identifier(String(decoding: scanner.take(36), as: UTF8.self))
    try scanner.skip(#"","ev":"#.utf8)
    let emailVerified = scanner.rest.first == UInt8(ascii: "t")
    try scanner.skip((emailVerified ? "true" : "false").utf8)
    try scanner.skip(#","iat":"#.utf8)
    let issued = try scanner.number()
    try scanner.skip(#","exp":"#.utf8)
    let expires = try scanner.number()
    try scanner.skip("}".utf8)
    guard scanner.rest.isEmpty, let account, let session else { throw .form }
    return (account, session, emailVerified, issued, expires)
  }
}

/// Which rule a refused access token breaks; for the log.
package enum AccessTokenFault: Error, Equatable, Sendable {
  /// Not the form that `AccessTokenIssuer` writes: another algorithm, issuer, audience, order, or not a JWT at all.
  case form
  /// The key it names is not known.
  case key
  case signature
  /// Issued in the future, or meant to live longer than allowed.
  case time
  case expired
}

/// Reads a fixed form from front to back.
private struct Scanner {
  var rest: ArraySlice<UInt8>

  mutating func skip(_ expected: some Collection<UInt8>) throws(AccessTokenFault) {
    guard rest.starts(with: expected) else { throw .form }
    rest = rest.dropFirst(expected.count)
  }

  /// Up to `count` bytes.
  mutating func take(_ count: Int) -> ArraySlice<UInt8> {
    let taken = rest.prefix(count)
    rest = rest.dropFirst(count)
    return taken
  }

  /// 1 to 11 digits: every time until the year 5138.
  mutating func number() throws(AccessTokenFault) -> Int64 {
    let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard (1...11).contains(digits.count), let value = Int64(String(decoding: digits, as: UTF8.self)) else {
      throw .form
    }
    rest = rest.dropFirst(digits.count)
    return value
  }
}
