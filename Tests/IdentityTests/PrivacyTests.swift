import API
import Postgres
import Primitives
import Protobuf
import RPC
import TestKit
import Testing
import identity

struct PrivacyTests {
  @Test("ID-9 a dump of the database holds no password, answer, token or link in clear")
  func dump() async throws {
    try await IdentityFixture.with { fixture in
      let first = try #require(try await fixture.register().session)
      let second = try await fixture.refresh(first.refreshToken)
      let third = try await fixture.logIn()
      _ = try await refusal { _ = try await fixture.logIn(password: "not the password") }
      let tokens = try await fixture.mails().map(\.token)
      _ = try await fixture.verify(tokens[0])

      let dump = try await fixture.dump()
      #expect(dump.contains("Anna Berg"), "the dump is of the right schema")
      let secrets =
        [
          IdentityFixture.password, IdentityFixture.answer, "rue de l'église", "not the password", first.refreshToken,
          second.refreshToken, third.refreshToken, first.accessToken, third.accessToken,
        ] + tokens
      for secret in secrets {
        #expect(!dump.contains(secret))
        #expect(!dump.contains(Hex.encode(secret.utf8)))
        if secret.utf8.count == 43, let bytes = Base64.decode(secret) { #expect(!dump.contains(Hex.encode(bytes))) }
      }
    }
  }

  @Test("ID-9 events hold the account's id and nothing else")
  func events() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.registerVerified()
      try await fixture.closeAccount(id)
      let payloads = try await fixture.database.query("SELECT payload, subject_id FROM outbox ORDER BY sequence")
      #expect(payloads.count == 3)
      for row in payloads {
        let (payload, subject) = try row.decode(([UInt8], Identifier).self)
        #expect(payload == IdentityV1.AccountRegistered(accountID: "\(id)").serialized() && subject == id)
      }
    }
  }
}
