import API
import Postgres
import Primitives
import Protobuf
import RPC
import Sealing
import TestKit
import Testing
import confirmation

struct RecordTests {
  @Test("CO-12 a confirmation stores whom, who and when, tells what follows (CO-15), and publishes it once (CO-14)")
  func confirm() async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      let attempt = try await fixture.open(try await fixture.current()[0].designationID).attemptID
      _ = try await fixture.answer(attempt)
      try await fixture.forgetMails()
      let answer = try await fixture.confirm(attempt)
      #expect(answer.summary.contains("recorded"))
      let (account, administrator, time, stored) = try await fixture.database.query(
        "SELECT account_id, administrator_id, confirm_time, attempt_id FROM confirmations")[0]
        .decode((Identifier, Identifier, Instant, Identifier).self)
      #expect((account, administrator, "\(stored)") == (fixture.owner, fixture.dora, attempt))
      #expect(answer.confirmTime == .init(time))
      #expect(try await fixture.told() == ["passing anna", "passing bert", "passing dora"])
      #expect(try await fixture.events().filter { $0 == "PassingConfirmed" }.count == 1)
      #expect(try await fixture.audit().last == "passing_confirmed")
      #expect(try await fixture.verifications(by: fixture.dora).map(\.status) == [.confirmed])
      #expect(try await fixture.count("attempts WHERE close_reason = 'confirmed'") == 1)
    }
  }

  @Test("CO-14 the event carries the statement, signed under its domain; nothing else is a valid signature")
  func statement() async throws {
    try await ConfirmationFixture.with { fixture in
      let time = try await fixture.confirm(try await fixture.passed()).confirmTime
      let payload = try await fixture.database.query(
        "SELECT payload FROM outbox WHERE type = \(ConfirmationV1.PassingConfirmed.fullName)")[0].decode([UInt8].self)
      let event = try ConfirmationV1.PassingConfirmed(serialized: payload)
      #expect((event.accountID, event.administratorID) == ("\(fixture.owner)", "\(fixture.dora)"))
      let signed = try #require(event.statement)
      let key = fixture.signingKey.verifyingKey
      #expect(signed.keyID == key.keyID && signed.signature.count == 64)
      #expect(key.isValid(signed.signature, for: Array("afterthoughts.confirmation.v1\0".utf8) + signed.statement))
      #expect(!key.isValid(signed.signature, for: signed.statement))
      #expect(
        try ConfirmationV1.ConfirmationStatement(serialized: signed.statement)
          == .init(confirmationID: event.confirmationID, accountID: "\(fixture.owner)", confirmTime: time))
      let stored = try await fixture.database.query("SELECT statement, signature, key_id FROM confirmations")[0]
        .decode(([UInt8], [UInt8], String).self)
      #expect((stored.0, stored.1, stored.2) == (signed.statement, signed.signature, signed.keyID))
    }
  }

  @Test("OP-39 the name is typed whatever the case and spacing", arguments: ["anna berg", "  ANNA \t berg\u{3000}"])
  func typedName(_ name: String) async throws {
    try await ConfirmationFixture.with { fixture async throws in
      #expect(try await fixture.confirm(try await fixture.passed(), name).confirmTime != nil)
    }
  }

  @Test("OP-39 any other name is refused and records nothing")
  func wrongName() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      for name in ["", " ", "Anna", "AnnaBerg", "Anna Bergs", "Anna\u{300} Berg", "Dora"] {
        let error = try await refusal { try await fixture.confirm(attempt, name) }
        #expect((error.code, error.violations.map(\.field)) == (.invalidArgument, ["typed_name"]))
      }
      #expect(try await fixture.count("confirmations") == 0)
      _ = try await fixture.confirm(attempt)
    }
  }

  @Test("CO-10 without a passed challenge there is no confirmation")
  func challengeRequired() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      let error = try await refusal { try await fixture.confirm(attempt) }
      #expect((error.code, error.reason) == (.failedPrecondition, "CHALLENGE_REQUIRED"))
      #expect(try await fixture.count("confirmations") == 0)
    }
  }

  @Test("CO-12 a second confirmation returns the first, under the same request id or another, however late")
  func second() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      let id = Identifier()
      let first = try await fixture.confirm(attempt, requestID: id)
      let mails = try await fixture.count("send_queue")
      try await fixture.ageAttempts("1 hour")
      #expect(try await fixture.confirm(attempt, requestID: id) == first)
      #expect(try await fixture.confirm(attempt) == first)
      #expect(
        try await refusal { try await fixture.confirm(attempt, "anna berg", requestID: id) }.reason
          == "REQUEST_ID_REUSED")
      #expect(try await fixture.count("confirmations") == 1)
      #expect(try await fixture.count("send_queue") == mails)
      #expect(try await fixture.events().filter { $0 == "PassingConfirmed" }.count == 1)
    }
  }

  @Test("CO-12 two confirmations at once make one record, one event and one set of mails", arguments: [true, false])
  func parallel(_ isSameRequest: Bool) async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      try await fixture.forgetMails()
      let (one, other) = (Identifier(), Identifier())
      async let first = fixture.confirm(attempt, requestID: one)
      async let second = fixture.confirm(attempt, requestID: isSameRequest ? one : other)
      #expect(try await first == second)
      #expect(try await fixture.count("confirmations") == 1)
      #expect(try await fixture.count("send_queue") == 2)
      #expect(try await fixture.events().filter { $0 == "PassingConfirmed" }.count == 1)
    }
  }

  @Test("CO-11 of a confirmation and a cancelling at once exactly one takes effect, and the other says so")
  func race() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      let (isConfirmed, isCancelled) = try await fixture.interleaving(fixture.owner, waiting: 2, "SELECT 1") {
        async let confirmed = Result { try await fixture.confirm(attempt) }
        async let cancelled = Result { try await fixture.cancel(attempt) }
        return ((try? await confirmed.get()) != nil, (try? await cancelled.get()) != nil)
      }
      #expect(isConfirmed != isCancelled)
      #expect(try await fixture.count("confirmations") == (isConfirmed ? 1 : 0))
      #expect(try await fixture.events().filter { $0 == "AttemptCancelled" }.count == (isConfirmed ? 0 : 1))
    }
  }

  @Test("CO-11 a confirmed attempt cannot be cancelled, and the call says so")
  func cancelAfter() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      _ = try await fixture.confirm(attempt)
      let error = try await refusal { try await fixture.cancel(attempt) }
      #expect((error.code, error.reason) == (.failedPrecondition, "ALREADY_CONFIRMED"))
    }
  }

  @Test("CO-12 after it nothing changes any more: no designation, no other attempt")
  func closed() async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.confirm(try await fixture.passed())
      // As identity does when it hears of it.
      fixture.standIns.change(fixture.owner) { $0.status = .deactivated }
      let designation = try await fixture.current()[0].designationID
      let again = try await refusal { try await fixture.open(designation) }
      #expect((again.code, again.reason) == (.failedPrecondition, "ALREADY_CONFIRMED"))
      #expect(try await refusal { try await fixture.designate() }.reason == "ACCOUNT_CLOSED")
      #expect(try await refusal { try await fixture.remove(.administrator) }.reason == "ACCOUNT_CLOSED")
      #expect(try await fixture.current().map(\.designationID) == [designation])
    }
  }

  @Test("CO-14 a confirmation that fails at its last statement leaves no record, mail, event or audit line")
  func failing() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      try await fixture.forgetMails()
      let (events, lines) = (try await fixture.events(), try await fixture.audit())
      for statement in [
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.event = 'passing_confirmed' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$
        """, "CREATE TRIGGER a_refuse BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION refuse()",
      ] as [Query] { try await fixture.database.execute(statement) }
      await #expect(throws: PostgresError.self) { try await fixture.confirm(attempt) }
      #expect(try await fixture.count("confirmations") + fixture.count("send_queue") == 0)
      #expect(try await fixture.events() == events)
      #expect(try await fixture.audit() == lines)
      try await fixture.database.execute("DROP TRIGGER a_refuse ON audit")
      _ = try await fixture.confirm(attempt)
      #expect(try await fixture.count("send_queue") == 2)
    }
  }

  @Test(
    "CO-13 neither record nor audit can be changed or deleted, even by the schema's owner",
    arguments: [
      "UPDATE confirmations SET confirm_time = now()", "DELETE FROM confirmations", "TRUNCATE confirmations",
      "UPDATE audit SET event = 'x'", "DELETE FROM audit WHERE false", "TRUNCATE audit",
      "DELETE FROM attempts", "DELETE FROM designations",
      """
      INSERT INTO confirmations SELECT * FROM confirmations
      ON CONFLICT (confirmation_id) DO UPDATE SET administrator_id = EXCLUDED.account_id
      """,
    ])
  func immutable(_ statement: String) async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.confirm(try await fixture.passed())
      func rows() async throws -> [String] {
        try await fixture.database.query("SELECT t::text FROM confirmations t UNION ALL SELECT a::text FROM audit a")
          .map { try $0.decode(String.self, at: 0) }
      }
      let before = try await rows()
      await #expect(throws: PostgresError.self) {
        try await fixture.database.execute("\(unescaped: statement)")
      }
      await #expect(throws: PostgresError.self) {
        try await fixture.database.transaction { transaction in
          try await transaction.execute("SET LOCAL session_replication_role = replica")
          if statement.contains("FROM attempts") || statement.contains("FROM designations") {
            // Foreign keys do sleep then; the record itself does not.
            try await transaction.execute("DELETE FROM confirmations")
          }
          try await transaction.execute("\(unescaped: statement)")
        }
      }
      #expect(try await rows() == before)
    }
  }

  @Test("CO-13 a second record of the same person is refused by a constraint")
  func onceByConstraint() async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.confirm(try await fixture.passed())
      let error = await #expect(throws: PostgresError.self) {
        try await fixture.database.execute(
          """
          INSERT INTO confirmations SELECT gen_random_uuid(), account_id, administrator_id, designation_id, attempt_id,
            confirm_time, statement, signature, key_id FROM confirmations
          """)
      }
      #expect(error?.isUniqueViolation("confirmations_once") == true)
    }
  }

  @Test("CO-13 the audit is a chain of hashes, and any change of an entry shows")
  func chain() async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.confirm(try await fixture.passed())
      let entries = try await fixture.count("audit")
      #expect(entries == 4)
      #expect(try await fixture.brokenLinks("audit") == 0)
      for change in [
        "event = 'x'", "actor_id = gen_random_uuid()", "audit_time = audit_time - interval '1 second'",
        "object_id = account_id",
      ] {
        try await fixture.database.transaction { transaction in
          try await transaction.execute("CREATE TEMPORARY TABLE changed ON COMMIT DROP AS SELECT * FROM audit")
          try await transaction.execute("UPDATE changed SET \(unescaped: change) WHERE entry = 2")
          let broken = try await transaction.query(fixture.links("changed"))[0].decode(Int.self)
          #expect(broken == 1, "\(change)")
          try await transaction.execute("DELETE FROM changed WHERE entry = 2")
          #expect(try await transaction.query(fixture.links("changed"))[0].decode(Int.self) == 1)
        }
      }
    }
  }

  @Test("CO-13 the service's own role adds to record and audit, and can do nothing else to them or the head")
  func role() async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.confirm(try await fixture.passed())
      let role = "test_role_" + Identifier().description.filter { $0 != "-" }
      try await fixture.database.execute("CREATE ROLE \(unescaped: role)")
      for grant in [
        "GRANT USAGE ON SCHEMA confirmation TO", "GRANT SELECT, INSERT, UPDATE, DELETE ON audit, confirmations TO",
        "GRANT SELECT ON audit_head TO",
      ] {
        try await fixture.database.execute("\(unescaped: grant) \(unescaped: role)")
      }
      func attempt(_ statement: Query) async throws {
        try await fixture.database.transaction { transaction in
          try await transaction.execute("SET LOCAL ROLE \(unescaped: role)")
          try await transaction.execute(statement)
        }
      }
      try await attempt(
        """
        INSERT INTO audit (account_id, actor_id, event, object_id, entry, hash, previous)
        VALUES (\(fixture.owner), \(fixture.owner), 'x', \(fixture.owner), 99, '', '')
        """)
      #expect(try await fixture.brokenLinks("audit") == 0)
      for statement in [
        "UPDATE audit SET event = 'x'", "DELETE FROM confirmations", "UPDATE audit_head SET entry = 0",
        "DELETE FROM audit_head",
      ] as [Query] {
        await #expect(throws: PostgresError.self) { try await attempt(statement) }
      }
      try await fixture.database.execute("DROP OWNED BY \(unescaped: role)")
      try await fixture.database.execute("DROP ROLE \(unescaped: role)")
    }
  }
}

extension ConfirmationFixture {
  /// How many entries do not follow from the ones before, recomputed.
  func brokenLinks(_ table: String) async throws -> Int {
    try await database.query(links(table))[0].decode(Int.self)
  }

  func links(_ table: String) -> Query {
    """
    SELECT count(*) FROM (
      SELECT hash, previous, lag(hash, 1, ''::bytea) OVER (ORDER BY entry) AS before, sha256(previous || convert_to(
        concat_ws('|', entry, account_id, actor_id, event, object_id, extract(epoch FROM audit_time)), 'UTF8')) AS computed
      FROM \(unescaped: table)) AS links
    WHERE hash <> computed OR previous <> before
    """
  }
}

extension Result where Failure == any Error {
  init(_ body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
