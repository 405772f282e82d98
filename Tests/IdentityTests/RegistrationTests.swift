import API
import Postgres
import Primitives
import RPC
import TestKit
import Testing
import identity

struct RegistrationTests {
  @Test("ID-5 registration returns the account and a session, mails a link and publishes AccountRegistered")
  func registers() async throws {
    try await IdentityFixture.with { fixture in
      let response = try await fixture.register()

      let account = try #require(response.account)
      #expect(account.email == "anna@afterthoughts.example" && !account.emailVerified)
      #expect(account.displayName == "Anna Berg" && account.timeZone == "Europe/Berlin" && account.status == .active)
      #expect(response.session?.accountID == account.accountID)
      let mails = try await fixture.mails()
      #expect(mails.count == 1 && mails[0].request.addressee?.email == account.email)
      #expect(mails[0].link.hasPrefix("http://afterthoughts.example/verify/") && mails[0].token.utf8.count == 43)
      #expect(try await fixture.events() == ["AccountRegistered"])
      #expect(try await fixture.activity(response.accountID) == ["account_registered"])
    }
  }

  @Test(
    "ID-1 a missing field or an unequal password is refused by name",
    arguments: [
      "email", "password", "password_confirmation", "display_name", "security_question_id", "security_answer",
    ])
  func missingField(name: String) throws {
    var request = IdentityFixture.registration()
    switch name {
    case "email": request.email = ""
    case "password": request.password = ""
    case "password_confirmation": request.passwordConfirmation = "seven blue heron"
    case "display_name": request.displayName = " "
    case "security_question_id": request.securityQuestionID = ""
    default: request.securityAnswer = ""
    }
    let error = #expect(throws: ServiceError.self) {
      try Registration(request, termsVersion: 1, timeZones: ["Europe/Berlin"])
    }
    #expect(error?.code == .invalidArgument)
    #expect(error?.violations.contains { $0.field == name } == true)
  }

  @Test("ID-1 one answer names every bad field, and nothing is stored")
  func allFaults() async throws {
    try await IdentityFixture.with { fixture in
      let error = try await refusal {
        _ = try await fixture.register(IdentityV1.RegisterRequest(requestID: "\(Identifier())", timeZone: "Mars/Base"))
      }
      #expect(
        error.violations.map(\.field) == [
          "email", "display_name", "password", "security_question_id", "security_answer", "terms_accepted",
          "terms_version", "time_zone",
        ])
      #expect(try await fixture.count("accounts") == 0)
      #expect(try await fixture.count("send_queue") == 0)
    }
  }

  @Test(
    "OP-10 a password has 10 to 128 characters and is neither the email, the name nor a common one",
    arguments: [
      ("ninechars", false), ("tencharss!", true), (String(repeating: "ab¢", count: 42) + "zz", true),
      (String(repeating: "ab¢", count: 43), false), (String(repeating: "👨‍👩‍👧‍👦x", count: 30), false),
      ("anna@afterthoughts.example", false), ("ANNA@Afterthoughts.example", false), ("anna  berg anna", false),
      ("password123", false), ("PassWord123", false), ("aaaaaaaaaaaa", false), ("qwertyuiop", false),
      ("correct horse paper clip", true),
    ])
  func passwords(password: String, isTaken: Bool) {
    let fault = PasswordRules.fault(password, email: "anna@afterthoughts.example", displayName: "Anna Berg Anna")
    #expect((fault == nil) == isTaken)
  }

  @Test("ID-1 a display name has at most 80 characters, an answer 2 to 128")
  func lengths() throws {
    func isTaken(_ change: (inout IdentityV1.RegisterRequest) -> Void) -> Bool {
      var request = IdentityFixture.registration()
      change(&request)
      return (try? Registration(request, termsVersion: 1, timeZones: ["Europe/Berlin"])) != nil
    }
    #expect(isTaken { $0.displayName = String(repeating: "n", count: 80) })
    #expect(!isTaken { $0.displayName = String(repeating: "n", count: 81) })
    #expect(!isTaken { $0.securityAnswer = " x " })
    #expect(isTaken { $0.securityAnswer = " xy " })
    #expect(isTaken { $0.securityAnswer = String(repeating: "x", count: 128) })
    #expect(!isTaken { $0.securityAnswer = String(repeating: "x", count: 129) })
    #expect(!isTaken { $0.securityQuestionID = "mothers_maiden_name" })
  }

  @Test(
    "ID-2 a malformed address is refused",
    arguments: ["anna", "anna@", "@afterthoughts.example", "a b@x.example", "anna@x.example\r\nBcc: b@x.example"])
  func malformed(email: String) throws {
    let error = #expect(throws: ServiceError.self) {
      try Registration(IdentityFixture.registration(email: email), termsVersion: 1, timeZones: ["Europe/Berlin"])
    }
    #expect(error?.violations.map(\.field) == ["email"])
  }

  @Test("ID-2 an address in use is refused, whatever its case, and changes nothing")
  func taken() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      for email in ["anna@afterthoughts.example", "ANNA@AfterThoughts.Example"] {
        let error = try await refusal { _ = try await fixture.register(email: email) }
        #expect(error.code == .alreadyExists && error.reason == "EMAIL_TAKEN")
      }
      #expect(try await fixture.count("accounts") == 1)
      #expect(try await fixture.count("sessions") == 1)
      #expect(try await fixture.mails().count == 1)
    }
  }

  @Test("ID-3 no account without acceptance of the current terms; the acceptance is stored")
  func terms() async throws {
    try await IdentityFixture.with { fixture in
      var request = IdentityFixture.registration()
      request.termsAccepted = false
      let refused = request
      let error = try await refusal { _ = try await fixture.register(refused) }
      #expect(error.violations.map(\.field) == ["terms_accepted"])
      for version: Int32 in [0, 2] {
        var request = IdentityFixture.registration()
        request.termsVersion = version
        let wrong = request
        let error = try await refusal { _ = try await fixture.register(wrong) }
        #expect(error.violations.map(\.field) == ["terms_version"])
      }
      #expect(try await fixture.count("accounts") == 0)

      let id = try await fixture.register().accountID
      let rows = try await fixture.database.query(
        """
        SELECT kind, version, accept_time > now() - interval '1 minute' FROM terms_acceptances WHERE account_id = \(id)
        """)
      #expect(rows.count == 1)
      let (kind, version, isRecent) = try rows[0].decode((String, Int32, Bool).self)
      #expect(kind == "terms" && version == 1 && isRecent)
    }
  }

  @Test("ID-3 a published text and an acceptance cannot be changed, not even in the database")
  func immutable() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      for statement: Query in [
        "UPDATE legal_versions SET text = 'x'", "DELETE FROM legal_versions",
        "UPDATE terms_acceptances SET version = 1",
        "DELETE FROM terms_acceptances", "UPDATE activity SET event = 'x'", "DELETE FROM activity",
      ] {
        let error = await #expect(throws: PostgresError.self) { try await fixture.database.execute(statement) }
        #expect(error?.sqlState == "23001", "\(statement)")
      }
    }
  }

  @Test("ID-3 legal documents come in their newest published version")
  func legalDocuments() async throws {
    try await IdentityFixture.with { fixture in
      let context = CallContext.anonymous(Methods.getLegalDocument)
      let terms = try await fixture.service.getLegalDocument(.init(kind: .terms), context)
      #expect(terms.version == 1 && terms.text.hasPrefix("# Terms of service"))
      let privacy = try await fixture.service.getLegalDocument(.init(kind: .privacyPolicy), context)
      #expect(privacy.version == 1 && privacy.text.hasPrefix("# Privacy policy"))
      #expect(
        try await refusal { _ = try await fixture.service.getLegalDocument(.init(), context) }.code == .notFound)

      try await fixture.database.execute(
        "INSERT INTO legal_versions (kind, version, text, publish_time) VALUES ('terms', 2, 'new', now())")
      try await fixture.database.execute(
        "INSERT INTO legal_versions (kind, version, text) VALUES ('terms', 3, 'draft')")
      #expect(try await fixture.service.getLegalDocument(.init(kind: .terms), context).version == 2)
      let error = try await refusal { _ = try await fixture.register() }
      #expect(error.violations.map(\.field) == ["terms_version"])
    }
  }

  @Test("ID-4 a User ID is the system's, unique, and cannot be changed")
  func userID() async throws {
    try await IdentityFixture.with { fixture in
      let first = try await fixture.register(email: "a@x.example").accountID
      let second = try await fixture.register(email: "b@x.example").accountID
      #expect(first != second)
      await #expect(throws: PostgresError.self) {
        try await fixture.database.execute(
          "UPDATE accounts SET account_id = \(Identifier()) WHERE account_id = \(first)")
      }
    }
  }

  @Test(
    "OP-18 the zone is one that the zone data names, UTC when none is given",
    arguments: [
      ("", "UTC"), ("UTC", "UTC"), ("Asia/Kolkata", "Asia/Kolkata"), ("Mars/Base", nil), ("Foo/Bar+3", nil),
      ("+05", nil), ("posix/Europe/Berlin", nil), ("europe", nil),
    ] as [(String, String?)])
  func zones(asked: String, stored: String?) async throws {
    try await IdentityFixture.with { fixture in
      var request = IdentityFixture.registration()
      request.timeZone = asked
      let changed = request
      if let stored {
        #expect(try await fixture.register(changed).account?.timeZone == stored)
      } else {
        let error = try await refusal { _ = try await fixture.register(changed) }
        #expect(error.violations.map(\.field) == ["time_zone"])
      }
    }
  }

  @Test("ID-5 a repeat with the same request id returns the first answer; with another body it is refused")
  func replay() async throws {
    try await IdentityFixture.with { fixture in
      var request = IdentityFixture.registration()
      let first = try await fixture.register(request)
      #expect(try await fixture.register(request) == first)
      #expect(try await fixture.count("accounts") == 1)
      #expect(try await fixture.mails().count == 1)

      request.displayName = "Someone Else"
      let changed = request
      #expect(try await refusal { _ = try await fixture.register(changed) }.reason == "REQUEST_ID_REUSED")
      request.requestID = "7"
      let malformed = request
      let error = try await refusal { _ = try await fixture.register(malformed) }
      #expect(error.violations.map(\.field) == ["request_id"])
    }
  }

  @Test("ID-32 two people have two accounts; neither sees the other's")
  func separate() async throws {
    try await IdentityFixture.with { fixture in
      let anna = try await fixture.register(email: "anna@x.example").accountID
      let ben = try await fixture.register(email: "ben@x.example").accountID
      #expect(try await fixture.account(anna).email == "anna@x.example")
      #expect(try await fixture.account(ben).email == "ben@x.example")
      #expect(try await refusal { _ = try await fixture.account(Identifier()) }.code == .notFound)
    }
  }

  @Test("ID-1 the listed questions are ten, each with an id and a text of its own")
  func questions() async throws {
    let all = SecurityQuestions.all
    #expect(all.count == 10 && Set(all.map(\.id)).count == 10 && Set(all.map(\.text)).count == 10)
  }
}
