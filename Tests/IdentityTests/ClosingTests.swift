import API
import Postgres
import Primitives
import TestKit
import Testing
import identity

struct ClosingTests {
  @Test("OP-16 a confirmed passing ends all sessions, refuses sign-in and publishes AccountClosed once")
  func closes() async throws {
    try await IdentityFixture.with { fixture in
      let response = try await fixture.register()
      let session = try #require(response.session)
      let other = try await fixture.register(email: "ben@x.example")

      try await fixture.closeAccount(response.accountID)
      try await fixture.closeAccount(response.accountID)

      #expect(try await refusal { _ = try await fixture.refresh(session.refreshToken) }.reason == "SESSION_ENDED")
      let error = try await refusal { _ = try await fixture.logIn() }
      #expect(error.code == .failedPrecondition && error.reason == "ACCOUNT_CLOSED")
      #expect(try await fixture.events().filter { $0 == "AccountClosed" }.count == 1)
      #expect(try await fixture.account(response.accountID).status == .active)
      let ended = try await fixture.database.query(
        "SELECT end_reason FROM sessions WHERE account_id = \(response.accountID)")
      #expect(try ended.map { try $0.decode(String?.self, at: 0) } == ["account_closed"])
      _ = try await fixture.refresh(try #require(other.session).refreshToken)
    }
  }

  @Test("OP-16 only the right password learns that an account is closed")
  func wrongPassword() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      try await fixture.closeAccount(id)
      #expect(
        try await refusal { _ = try await fixture.logIn(password: "not the password") }.reason == "BAD_CREDENTIALS")
    }
  }

  @Test("OP-16 a passing of an account that is not ours changes nothing")
  func unknown() async throws {
    try await IdentityFixture.with { fixture in
      try await fixture.closeAccount(Identifier())
      #expect(try await fixture.events().isEmpty)
    }
  }
}
