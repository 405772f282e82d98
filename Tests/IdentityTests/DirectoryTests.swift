import API
import Primitives
import RPC
import Sealing
import TestKit
import Testing
import identity

struct DirectoryTests {
  @Test("ID-11 the published keys verify the access tokens")
  func keys() async throws {
    try await IdentityFixture.with { fixture in
      let session = try #require(try await fixture.register().session)
      let published = try await fixture.directory.getSigningKeys(
        .init(), .service("vault", DirectoryMethods.getSigningKeys))
      let keys = try published.keys.map { try VerifyingKey(raw: $0.publicKey) }
      #expect(published.keys.map(\.keyID) == keys.map(\.keyID))
      let claims = try AccessTokenVerifier(keys: keys, issuer: published.issuer).verify(
        session.accessToken, now: .now())
      #expect("\(claims.accountID)" == session.accountID)
    }
  }

  @Test("ID-11 the key before the current one stays published")
  func previousKey() async throws {
    try await IdentityFixture.with { fixture in
      let old = SigningKey.random()
      let config = IdentityConfig(signingKey: .random(), previousKey: old.verifyingKey)
      let directory = DirectoryService(runtime: fixture.runtime, config: config, hasher: fixture.service.hasher)
      let keys = try await directory.getSigningKeys(.init(), .service("vault", DirectoryMethods.getSigningKeys)).keys
      #expect(keys.map(\.keyID) == [config.signingKey.verifyingKey.keyID, old.verifyingKey.keyID])
    }
  }

  @Test("ID-10 accounts come by id with their display names; unknown ids are left out")
  func batch() async throws {
    try await IdentityFixture.with { fixture in
      let context = CallContext.service("delivery", DirectoryMethods.batchGetAccounts)
      let anna = try await fixture.register().accountID
      let found = try await fixture.directory.batchGetAccounts(
        .init(accountIDs: ["\(anna)", "\(anna)", "\(Identifier())"]), context)
      #expect(found.accounts.map(\.accountID) == ["\(anna)"] && found.accounts.map(\.displayName) == ["Anna Berg"])

      let none = try await refusal { _ = try await fixture.directory.batchGetAccounts(.init(), context) }
      #expect(none.violations.map(\.field) == ["account_ids"])
      let most = (0..<1000).map { _ in "\(Identifier())" }
      #expect(try await fixture.directory.batchGetAccounts(.init(accountIDs: most), context).accounts.isEmpty)
      let error = try await refusal {
        _ = try await fixture.directory.batchGetAccounts(.init(accountIDs: most + ["\(anna)"]), context)
      }
      #expect(error.violations.map(\.field) == ["account_ids"])
    }
  }

  @Test("OP-13 only verified addresses lead to an account, as they were asked for")
  func findByEmail() async throws {
    try await IdentityFixture.with { fixture in
      let context = CallContext.service("confirmation", DirectoryMethods.findAccountsByEmail)
      let anna = try await fixture.registerVerified()
      _ = try await fixture.register(email: "ben@x.example")
      let request = IdentityV1.FindAccountsByEmailRequest(
        emails: ["Anna@Afterthoughts.example", "ben@x.example", "nobody@x.example"])
      let found = try await fixture.directory.findAccountsByEmail(request, context)
      #expect(found.accounts == [.init(email: "Anna@Afterthoughts.example", accountID: "\(anna)")])

      let most = (0..<1000).map { "a\($0)@x.example" }
      #expect(try await fixture.directory.findAccountsByEmail(.init(emails: most), context).accounts.isEmpty)
      for emails in [[], most + ["b@x.example"]] {
        let error = try await refusal {
          _ = try await fixture.directory.findAccountsByEmail(.init(emails: emails), context)
        }
        #expect(error.violations.map(\.field) == ["emails"])
      }
    }
  }

  @Test("OP-9 the security question is the one that was chosen")
  func question() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      let context = CallContext.service("confirmation", DirectoryMethods.getSecurityQuestion)
      let question = try await fixture.directory.getSecurityQuestion(.init(accountID: "\(id)"), context).question
      #expect(question == SecurityQuestions.question("childhood_street"))
      let error = try await refusal {
        _ = try await fixture.directory.getSecurityQuestion(.init(accountID: "\(Identifier())"), context)
      }
      #expect(error.code == .notFound)
    }
  }

  @Test(
    "OP-10 an answer is compared without regard to case, spacing and forms",
    arguments: [
      (IdentityFixture.answer, true), ("  RUE DE L'ÉGLISE ", true), ("rue de l'e\u{301}glise", true),
      ("Rue de l'Eglise", false), ("", false), ("Rue de l'Église 2", false),
      (String(repeating: "x", count: 600), false),
    ])
  func answer(text: String, isRight: Bool) async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      let context = CallContext.service("confirmation", DirectoryMethods.checkSecurityAnswer)
      let request = IdentityV1.CheckSecurityAnswerRequest(accountID: "\(id)", securityAnswer: text)
      #expect(try await fixture.directory.checkSecurityAnswer(request, context).correct == isRight)
    }
  }
}
