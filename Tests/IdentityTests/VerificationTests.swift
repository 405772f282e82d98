import API
import Postgres
import Primitives
import RPC
import Sealing
import TestKit
import Testing
import identity

struct VerificationTests {
  @Test("ID-6 the mailed link marks the address as verified, once, and publishes EmailVerified")
  func verifies() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      let token = try await fixture.mails()[0].token

      #expect(try await fixture.verify(token).displayName == "Anna Berg")
      #expect(try await fixture.account(id).emailVerified)
      #expect(try await fixture.events() == ["AccountRegistered", "EmailVerified"])
      #expect(try await fixture.activity(id) == ["account_registered", "email_verified"])
      #expect(try await refusal { _ = try await fixture.verify(token) }.code == .notFound)
      #expect(try await fixture.events().count == 2)
    }
  }

  @Test("ID-6 a repeat of the call with its request id greets again")
  func replay() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      let token = try await fixture.mails()[0].token
      let requestID = Identifier()
      let first = try await fixture.verify(token, requestID: requestID)
      #expect(try await fixture.verify(token, requestID: requestID) == first)
    }
  }

  @Test("OP-11 unknown, malformed and other spellings of a link are not found and change nothing")
  func unknown() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      let token = try await fixture.mails()[0].token
      for wrong in ["", "x", String(repeating: "A", count: 43), token + "=", String(token.dropLast())] {
        #expect(try await refusal { _ = try await fixture.verify(wrong) }.code == .notFound)
      }
      #expect(try await !fixture.account(id).emailVerified)
    }
  }

  @Test("OP-11 a link works for 24 hours", arguments: [("23 hours 59 minutes", true), ("24 hours", false)])
  func expiry(age: String, works: Bool) async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      try await fixture.database.execute(
        """
        UPDATE email_verifications
        SET create_time = create_time - \(age)::text::interval, expire_time = expire_time - \(age)::text::interval
        """)
      let token = try await fixture.mails()[0].token
      if works {
        _ = try await fixture.verify(token)
      } else {
        #expect(try await refusal { _ = try await fixture.verify(token) }.code == .notFound)
      }
      #expect(try await fixture.account(id).emailVerified == works)
    }
  }

  @Test("OP-11 a newer link voids the older one")
  func newer() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      let old = try await fixture.mails()[0].token
      try await fixture.resend(id)
      let new = try #require(try await fixture.mails().first { $0.token != old }).token

      #expect(try await refusal { _ = try await fixture.verify(old) }.code == .notFound)
      _ = try await fixture.verify(new)
      #expect(try await fixture.account(id).emailVerified)
    }
  }

  @Test("ID-5 at most five verification mails go out in an hour, and the answer says when to come back")
  func mailLimit() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      for _ in 2...5 { try await fixture.resend(id) }
      let error = try await refusal { try await fixture.resend(id) }
      #expect(error.code == .resourceExhausted && error.reason == "MAIL_LIMIT")
      let wait = try #require(error.retryAfter)
      #expect(wait > .seconds(3500) && wait <= .seconds(3600))
      #expect(try await fixture.mails().count == 5)

      try await fixture.database.execute(
        "UPDATE email_verifications SET create_time = create_time - interval '1 hour'")
      try await fixture.resend(id)
      #expect(try await fixture.mails().count == 6)
    }
  }

  @Test("ID-6 a verified address gets no further link")
  func alreadyVerified() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.registerVerified()
      let error = try await refusal { try await fixture.resend(id) }
      #expect(error.code == .failedPrecondition && error.reason == "EMAIL_ALREADY_VERIFIED")
    }
  }

  @Test("OP-13 the access token tells whether the address is verified, from the next refresh on")
  func claim() async throws {
    try await IdentityFixture.with { fixture in
      let session = try #require(try await fixture.register().session)
      #expect(try !fixture.claims(session).emailVerified)
      _ = try await fixture.verify(try await fixture.mails()[0].token)
      #expect(try await fixture.claims(fixture.refresh(session.refreshToken)).emailVerified)
    }
  }
}
