import Primitives
import Sealing
import Testing

struct AccessTokenTests {
  private let key = SigningKey.random()
  private let account = Identifier()
  private let session = Identifier()
  private let now = Instant(seconds: 1_800_000_000)

  private var verifier: AccessTokenVerifier { AccessTokenVerifier(keys: [key.verifyingKey], issuer: "identity") }

  private func issue(issuer: String = "identity", audience: String = "afterthoughts") throws -> String {
    try AccessTokenIssuer(key: key, issuer: issuer, audience: audience)
      .issue(account: account, session: session, emailVerified: true, now: now).reveal()
  }

  /// A token with any header and claims, rightly signed.
  private func forge(header: String? = nil, claims: String? = nil) throws -> String {
    let header = header ?? #"{"alg":"EdDSA","kid":"\#(key.verifyingKey.keyID)","typ":"JWT"}"#
    let claims = claims ?? self.claims()
    let signed = Base64.encode(header.utf8) + "." + Base64.encode(claims.utf8)
    return signed + "." + Base64.encode(try key.sign(Array(signed.utf8)))
  }

  private func claims(issued: Int64 = 1_800_000_000, expires: Int64 = 1_800_000_600) -> String {
    #"{"iss":"identity","aud":"afterthoughts","sub":"\#(account)","sid":"\#(session)","ev":true,"#
      + #""iat":\#(issued),"exp":\#(expires)}"#
  }

  private func reason(_ token: String, at time: Instant? = nil) -> String? {
    do {
      _ = try verifier.verify(token, now: time ?? now)
      return nil
    } catch {
      #expect(error.code == .unauthenticated)
      return error.reason
    }
  }

  @Test("Sealing reads the access token it issues")
  func roundTrip() throws {
    let claims = try verifier.verify(issue(), now: now)
    #expect(claims.accountID == account && claims.sessionID == session && claims.emailVerified)
    #expect(claims.expires == now.advanced(by: .seconds(600)))
    #expect(try reason(forge()) == nil)
  }

  @Test("Sealing allows clocks to differ by 60 seconds and not by more")
  func times() throws {
    let token = try issue()
    #expect(reason(token, at: now.advanced(by: .seconds(-60))) == nil)
    #expect(reason(token, at: now.advanced(by: .seconds(-61))) == "TOKEN_INVALID")
    #expect(reason(token, at: now.advanced(by: .seconds(659))) == nil)
    #expect(reason(token, at: now.advanced(by: .seconds(660))) == "TOKEN_EXPIRED")
  }

  @Test("Sealing refuses a token of more than 15 minutes, or that ends before it begins")
  func lifetimes() throws {
    #expect(try reason(forge(claims: claims(expires: 1_800_000_900))) == nil)
    #expect(try reason(forge(claims: claims(expires: 1_800_000_901))) == "TOKEN_INVALID")
    #expect(try reason(forge(claims: claims(expires: 1_800_000_000))) == "TOKEN_INVALID")
    #expect(try reason(forge(claims: claims(expires: 1))) == "TOKEN_INVALID")
    #expect(try reason(forge(claims: claims().replacing("600}", "99999999999999999999}"))) == "TOKEN_INVALID")
  }

  @Test("Sealing refuses another algorithm, no key id, an unknown key id and any other header")
  func headers() throws {
    let id = key.verifyingKey.keyID
    let headers = [
      #"{"alg":"none","kid":"\#(id)","typ":"JWT"}"#, #"{"alg":"HS256","kid":"\#(id)","typ":"JWT"}"#,
      #"{"alg":"EdDSA","typ":"JWT"}"#, #"{"alg":"EdDSA","kid":"0000000000000000","typ":"JWT"}"#,
      #"{"alg":"EdDSA","kid":"","typ":"JWT"}"#, #"{"alg":"EdDSA","kid":"\#(id)","typ":"JWT","crit":[]}"#, "", "{}",
      #"{"alg":"EdDSA","kid":"\#(id)","typ":"JWT"} "#,
    ]
    for header in headers { #expect(try reason(forge(header: header)) == "TOKEN_INVALID", "\(header)") }
  }

  @Test("Sealing refuses another issuer and another audience")
  func issuerAndAudience() throws {
    #expect(try reason(issue(issuer: "identity2")) == "TOKEN_INVALID")
    #expect(try reason(issue(audience: "staff")) == "TOKEN_INVALID")
  }

  @Test("Sealing refuses claims in any other form")
  func otherClaims() throws {
    let good = claims()
    let bad = [
      "", "{}", good + " ", String(good.dropLast()) + #","x":1}"#, good.replacing("true", "1"),
      good.replacing(account.description, "me"), good.replacing("\"iat\":", "\"iat\": "),
      good.replacing("1800000000", "-1"),
    ]
    for text in bad { #expect(try reason(forge(claims: text)) == "TOKEN_INVALID", "\(text)") }
  }

  @Test("Sealing refuses another key's signature, a changed token and a wrong number of segments")
  func signatures() throws {
    let token = try issue()
    let parts = token.split(separator: ".").map(String.init)
    let other = try AccessTokenIssuer(key: SigningKey.random(), issuer: "identity")
      .issue(account: account, session: session, emailVerified: true, now: now).reveal()
    let bad = [
      parts[0] + "." + parts[1] + ".", parts[0] + "." + parts[1], token + ".", token + "." + parts[2], "." + token,
      token + "=", token + "==", parts[0] + "." + parts[1] + "." + other.split(separator: ".")[2], other, "", "..",
      String(repeating: "a", count: 5000),
    ]
    for text in bad { #expect(reason(text) == "TOKEN_INVALID", "\(text.prefix(300))") }
    for index in token.indices where token[index] != "." {
      var changed = token
      changed.replaceSubrange(index...index, with: token[index] == "A" ? "B" : "A")
      #expect(reason(changed) == "TOKEN_INVALID")
    }
  }

  @Test("Sealing accepts the old key and the new one while both are published")
  func rotation() throws {
    let both = AccessTokenVerifier(keys: [SigningKey.random().verifyingKey, key.verifyingKey], issuer: "identity")
    #expect(try both.verify(issue(), now: now).accountID == account)
  }
}

extension String {
  func replacing(_ old: String, _ new: String) -> String {
    guard let range = firstRange(of: old) else { return self }
    var copy = self
    copy.replaceSubrange(range, with: new)
    return copy
  }

  private func firstRange(of text: String) -> Range<String.Index>? {
    indices.first { self[$0...].hasPrefix(text) }.map { $0..<index($0, offsetBy: text.count) }
  }
}
