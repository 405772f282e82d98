import API
import Postgres
import Primitives
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing
import identity

extension IdentityFixture {
  func claims(_ session: IdentityV1.Session) throws -> AccessTokenClaims {
    try AccessTokenVerifier(keys: config.verifyingKeys, issuer: config.issuer).verify(
      session.accessToken, now: .now())
  }

  /// Moves a session's life into the past.
  func age(_ session: IdentityV1.Session, created: String, used: String) async throws {
    try await database.execute(
      """
      UPDATE sessions SET create_time = now() - \(created)::text::interval, last_use_time = now() - \(used)::text::interval
      WHERE session_id = \(try #require(Identifier(session.sessionID)))
      """)
  }
}

struct SessionTests {
  @Test("ID-11 email and password open a session of that account only")
  func logIn() async throws {
    try await IdentityFixture.with { fixture in
      let anna = try await fixture.register(email: "anna@x.example").accountID
      _ = try await fixture.register(email: "ben@x.example")
      for email in ["anna@x.example", "  ANNA@X.example "] {
        let session = try await fixture.logIn(email: email)
        let claims = try fixture.claims(session)
        #expect(session.accountID == "\(anna)" && claims.accountID == anna)
        #expect("\(claims.sessionID)" == session.sessionID)
        #expect(claims.issued.duration(to: claims.expires) == .seconds(600))
        #expect(session.accessExpireTime?.seconds == claims.expires.seconds)
      }
      #expect(try await fixture.activity(anna) == ["account_registered", "signed_in", "signed_in"])
    }
  }

  @Test("ID-11 a wrong password and an unknown address answer alike, without a session")
  func badCredentials() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      let wrong = try await refusal { _ = try await fixture.logIn(password: "seven green herons") }
      let unknown = try await refusal { _ = try await fixture.logIn(email: "nobody@x.example") }
      for error in [wrong, unknown] {
        #expect(error.code == .unauthenticated && error.reason == "BAD_CREDENTIALS")
        #expect(error.message == wrong.message && error.retryAfter == nil)
      }
      #expect(try await fixture.count("sessions") == 1)
      #expect(try await fixture.activity(id) == ["account_registered", "sign_in_failed"])
    }
  }

  @Test("ID-11 a malformed sign-in is refused by field and counts nothing")
  func malformed() async throws {
    try await IdentityFixture.with { fixture in
      let error = try await refusal {
        _ = try await fixture.logIn(email: "nobody", password: String(repeating: "x", count: 513))
      }
      #expect(error.violations.map(\.field) == ["email", "password"])
      #expect(try await fixture.count("sign_in_throttles") == 0)
    }
  }

  @Test("ID-11 a repeat of a sign-in with its request id returns the same session")
  func logInReplay() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      let request = IdentityV1.LogInRequest(
        requestID: "\(Identifier())", email: "anna@afterthoughts.example", password: IdentityFixture.password)
      let first = try await fixture.service.logIn(request, .anonymous(Methods.logIn))
      #expect(try await fixture.service.logIn(request, .anonymous(Methods.logIn)) == first)
      #expect(try await fixture.count("sessions") == 2)
    }
  }

  @Test("OP-10 a password hash of lesser strength is replaced at sign-in")
  func rehash() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      let stronger = IdentityService(
        runtime: fixture.runtime, config: fixture.config, courier: try fixture.runtime.courier(),
        hasher: PasswordHasher(pool: fixture.runtime.pool, memoryKiB: 128, passes: 1))
      let request = IdentityV1.LogInRequest(
        requestID: "\(Identifier())", email: "anna@afterthoughts.example", password: IdentityFixture.password)
      _ = try await stronger.logIn(request, .anonymous(Methods.logIn))
      let hash = try await fixture.database.query("SELECT password_hash FROM accounts")[0].decode(String.self, at: 0)
      #expect(hash.hasPrefix("$argon2id$v=19$m=128,"))
      _ = try await fixture.logIn()
    }
  }

  @Test("ID-11 a refresh token works once and gives the same session a new pair")
  func refresh() async throws {
    try await IdentityFixture.with { fixture in
      let first = try #require(try await fixture.register().session)
      let second = try await fixture.refresh(first.refreshToken)
      #expect(second.sessionID == first.sessionID && second.refreshToken != first.refreshToken)
      let third = try await fixture.refresh(second.refreshToken)
      #expect(third.sessionID == first.sessionID)
    }
  }

  @Test("ID-11 a spent refresh token ends its whole session, and no other one")
  func reuse() async throws {
    try await IdentityFixture.with { fixture in
      let first = try #require(try await fixture.register().session)
      let other = try await fixture.logIn()
      let second = try await fixture.refresh(first.refreshToken)
      let error = try await refusal { _ = try await fixture.refresh(first.refreshToken) }
      #expect(error.code == .unauthenticated && error.reason == "SESSION_ENDED")
      let after = try await refusal { _ = try await fixture.refresh(second.refreshToken) }
      #expect(after.reason == "SESSION_ENDED")
      _ = try await fixture.refresh(other.refreshToken)
    }
  }

  @Test("ID-11 a repeat with the same request id returns the same pair for 60 seconds, and ends the session later")
  func refreshReplay() async throws {
    try await IdentityFixture.with { fixture in
      let first = try #require(try await fixture.register().session)
      let requestID = Identifier()
      let second = try await fixture.refresh(first.refreshToken, requestID: requestID)
      #expect(try await fixture.refresh(first.refreshToken, requestID: requestID) == second)
      try await fixture.database.execute("UPDATE requests SET create_time = create_time - interval '58 seconds'")
      #expect(try await fixture.refresh(first.refreshToken, requestID: requestID) == second)

      try await fixture.database.execute("UPDATE requests SET create_time = create_time - interval '2 seconds'")
      let late = try await refusal { _ = try await fixture.refresh(first.refreshToken, requestID: requestID) }
      #expect(late.reason == "SESSION_ENDED")
      #expect(try await refusal { _ = try await fixture.refresh(second.refreshToken) }.reason == "SESSION_ENDED")
    }
  }

  @Test("ID-11 of many refreshes at once with one token, one wins at most and the session ends")
  func refreshRace() async throws {
    try await IdentityFixture.with { fixture in
      let session = try #require(try await fixture.register().session)
      let won = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<10 {
          group.addTask { (try? await fixture.refresh(session.refreshToken)) != nil }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(won == 1)
      let reason = try await fixture.database.query("SELECT end_reason FROM sessions")[0].decode(String?.self, at: 0)
      #expect(reason == "token_reused")
    }
  }

  @Test("ID-11 an unknown or malformed refresh token ends nothing")
  func unknownToken() async throws {
    try await IdentityFixture.with { fixture in
      let session = try #require(try await fixture.register().session)
      for token in ["", "x", String(repeating: "A", count: 43)] {
        #expect(try await refusal { _ = try await fixture.refresh(token) }.reason == "SESSION_ENDED")
      }
      _ = try await fixture.refresh(session.refreshToken)
    }
  }

  @Test(
    "ID-11 a session ends after 30 idle days and after 180 days in all",
    arguments: [
      ("29 days 23 hours", "29 days 23 hours", true), ("30 days", "30 days", false),
      ("179 days 23 hours", "1 hour", true), ("180 days", "1 hour", false),
    ])
  func ages(created: String, used: String, isLive: Bool) async throws {
    try await IdentityFixture.with { fixture in
      let session = try #require(try await fixture.register().session)
      try await fixture.age(session, created: created, used: used)
      if isLive {
        let next = try await fixture.refresh(session.refreshToken)
        #expect(next.sessionID == session.sessionID)
      } else {
        #expect(try await refusal { _ = try await fixture.refresh(session.refreshToken) }.reason == "SESSION_ENDED")
      }
    }
  }

  @Test("ID-11 a use begins the idle time anew")
  func use() async throws {
    try await IdentityFixture.with { fixture in
      let session = try #require(try await fixture.register().session)
      try await fixture.age(session, created: "40 days", used: "20 days")
      let next = try await fixture.refresh(session.refreshToken)
      let isFresh = try await fixture.database.query("SELECT last_use_time > now() - interval '1 minute' FROM sessions")
      #expect(try isFresh[0].decode(Bool.self, at: 0))
      _ = try await fixture.refresh(next.refreshToken)
    }
  }

  @Test("ID-11 signing out ends this session and leaves the others")
  func logOut() async throws {
    try await IdentityFixture.with { fixture in
      let first = try #require(try await fixture.register().session)
      let second = try await fixture.logIn()
      let context = CallContext(
        method: Methods.logOut, peerAddress: TestRuntime.loopback, caller: .account(try fixture.claims(first).caller))
      let request = IdentityV1.LogOutRequest(requestID: "\(Identifier())")
      _ = try await fixture.service.logOut(request, context)
      _ = try await fixture.service.logOut(request, context)
      #expect(try await refusal { _ = try await fixture.refresh(first.refreshToken) }.reason == "SESSION_ENDED")
      _ = try await fixture.refresh(second.refreshToken)
    }
  }
}
