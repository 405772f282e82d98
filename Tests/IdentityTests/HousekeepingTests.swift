import API
import Postgres
import Primitives
import TestKit
import Testing

import identity

struct HousekeepingTests {
  @Test("ID-11 the sweep deletes what no rule looks at any more, and leaves what still counts")
  func sweep() async throws {
    try await IdentityFixture.with { fixture in
      let live = try #require(try await fixture.register().session)
      let old = try await fixture.logIn()
      try await fixture.age(old, created: "182 days", used: "182 days")
      for email in ["a@x.example", "b@x.example"] {
        _ = try await refusal { _ = try await fixture.logIn(email: email) }
      }
      try await fixture.database.execute(
        """
        UPDATE sign_in_throttles SET change_time = now() - interval '4 days'
        WHERE email_digest = (SELECT min(email_digest::text)::bytea FROM sign_in_throttles)
        """)

      try await Housekeeping.sweep(fixture.database)

      #expect(try await fixture.count("sessions") == 1)
      #expect(try await fixture.count("refresh_tokens") == 1)
      #expect(try await fixture.count("sign_in_throttles") == 1)
      #expect(try await fixture.count("email_verifications") == 1)
      _ = try await fixture.refresh(live.refreshToken)
    }
  }
}
