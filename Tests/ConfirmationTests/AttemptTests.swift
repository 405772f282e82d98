import API
import Postgres
import Primitives
import TestKit
import Testing
import confirmation

struct AttemptTests {
  @Test("CO-9 beginning shows what it starts, mails a code, alerts the person, and records no confirmation")
  func open() async throws {
    try await ConfirmationFixture.with { fixture in
      let designation = try await fixture.designate()[0].designationID
      try await fixture.forgetMails()
      let attempt = try await fixture.open(designation)
      #expect(attempt.explanation.contains("cancel") && attempt.displayName == "Anna Berg")
      #expect(attempt.securityQuestion == "Dora's question?")
      #expect(try await fixture.told() == ["alert anna", "code dora"])
      let code = try #require(try await fixture.codes().first)
      #expect(code.utf8.count == 6 && code.allSatisfy { ("0"..."9").contains($0) })
      let seconds = try #require(attempt.challengeExpireTime?.seconds)
      let now = try await fixture.database.query("SELECT now()")[0].decode(Instant.self).seconds
      #expect((590...600).contains(seconds - now))
      #expect(try await fixture.count("confirmations") == 0)
      #expect(try await fixture.events().last == "AttemptOpened")
      #expect(try await fixture.audit().last == "attempt_opened")
    }
  }

  @Test("OP-39 answer and code together pass; then confirming is open for 10 minutes, and a repeat says the same")
  func pass() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      let id = Identifier()
      let passed = try await fixture.answer(attempt, requestID: id)
      let now = try await fixture.database.query("SELECT now()")[0].decode(Instant.self).seconds
      #expect((590...600).contains(try #require(passed.confirmExpireTime?.seconds) - now))
      #expect(try await fixture.answer(attempt, requestID: id) == passed)
      #expect(try await fixture.count("attempts WHERE tries = 1") == 1)
      #expect(try await fixture.answer(attempt) == passed)
      #expect(try await fixture.audit().contains("challenge_passed"))
    }
  }

  @Test("OP-39 a wrong answer, a wrong code and both wrong are refused alike, and each counts as a try")
  func wrong() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      let code = try #require(try await fixture.codes().last)
      let wrongCode = code == "000000" ? "000001" : "000000"
      var said: Set<String> = []
      let pairs = [(ConfirmationFixture.answer, wrongCode), ("wrong", code), ("wrong", wrongCode), ("", "")]
      for (index, (answer, code)) in pairs.enumerated() {
        let error = try await refusal { try await fixture.answer(attempt, answer, code: code) }
        #expect((error.code, error.reason) == (.invalidArgument, "CHALLENGE_FAILED"))
        said.insert("\(error)")
        #expect(try await fixture.count("attempts WHERE tries = \(index + 1)") == 1)
      }
      #expect(said.count == 1)
      #expect(try await refusal { try await fixture.confirm(attempt) }.reason == "CHALLENGE_REQUIRED")
      // The fifth try is still one.
      _ = try await fixture.answer(attempt)
    }
  }

  @Test("OP-39 after 5 wrong tries the right answer comes too late")
  func spent() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      for _ in 0..<5 { _ = try await refusal { try await fixture.answer(attempt, "wrong") } }
      let error = try await refusal { try await fixture.answer(attempt) }
      #expect((error.code, error.reason) == (.failedPrecondition, "CHALLENGE_SPENT"))
      #expect(try await fixture.count("attempts WHERE tries = 5 AND pass_time IS NULL") == 1)
    }
  }

  @Test("OP-39 many answers at once are still 5 tries")
  func guessing() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      let reasons = try await withThrowingTaskGroup(of: String.self) { group in
        for _ in 0..<12 { group.addTask { try await refusal { try await fixture.answer(attempt, "wrong") }.reason } }
        return try await group.reduce(into: [String]()) { $0.append($1) }
      }
      #expect(reasons.filter { $0 == "CHALLENGE_FAILED" }.count == 5)
      #expect(reasons.filter { $0 == "CHALLENGE_SPENT" }.count == 7)
    }
  }

  @Test("OP-39 a try that could not be judged is given back")
  func unjudged() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      fixture.standIns.setAnswers(areThere: false)
      for _ in 0..<6 { #expect(try await refusal { try await fixture.answer(attempt) }.code == .unavailable) }
      #expect(try await fixture.count("attempts WHERE tries = 0") == 1)
      fixture.standIns.setAnswers(areThere: true)
      _ = try await fixture.answer(attempt)
    }
  }

  @Test("OP-39 the challenge ends after 10 minutes, and so does the time to confirm")
  func expiry() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      try await fixture.ageAttempts("9 minutes")
      _ = try await fixture.answer(attempt)
      try await fixture.ageAttempts("10 minutes")
      let late = try await refusal { try await fixture.confirm(attempt) }
      #expect((late.code, late.reason) == (.failedPrecondition, "CHALLENGE_EXPIRED"))
      #expect(try await fixture.count("confirmations") == 0)

      let second = try await fixture.open(try await fixture.current()[0].designationID).attemptID
      try await fixture.ageAttempts("10 minutes")
      let error = try await refusal { try await fixture.answer(second) }
      #expect((error.code, error.reason) == (.failedPrecondition, "CHALLENGE_EXPIRED"))
      #expect(try await fixture.count("attempts WHERE attempt_id = '\(second)' AND tries = 0") == 1)
    }
  }

  @Test("OP-39 three challenges in 24 hours; the wait is told, and a new designation does not help")
  func challengesPerDay() async throws {
    try await ConfirmationFixture.with { fixture in
      var designation = try await fixture.designate()[0].designationID
      for _ in 0..<3 { _ = try await fixture.open(designation) }
      try await fixture.remove(.administrator)
      designation = try await fixture.designate()[0].designationID
      try await fixture.forgetMails()
      let error = try await refusal { try await fixture.open(designation) }
      #expect((error.code, error.reason) == (.resourceExhausted, "TOO_MANY_CHALLENGES"))
      let wait = try #require(error.retryAfter)
      #expect(wait > .seconds(86_400 - 600) && wait <= .seconds(86_400))
      #expect(try await fixture.count("send_queue") == 0)
      try await fixture.ageAttempts("23 hours 59 minutes")
      #expect(try await refusal { try await fixture.open(designation) }.reason == "TOO_MANY_CHALLENGES")
      try await fixture.ageAttempts("1 minute")
      _ = try await fixture.open(designation)
      #expect(try await fixture.count("send_queue") == 2)
    }
  }

  @Test("OP-39 a new attempt ends the one before, passed or not")
  func superseded() async throws {
    try await ConfirmationFixture.with { fixture in
      let first = try await fixture.passed()
      let second = try await fixture.open(try await fixture.current()[0].designationID).attemptID
      for call in [{ _ = try await fixture.answer(first) }, { _ = try await fixture.confirm(first) }] {
        let error = try await refusal(call)
        #expect((error.code, error.reason) == (.failedPrecondition, "ATTEMPT_CLOSED"))
      }
      #expect(try await fixture.events().suffix(2) == ["AttemptCancelled", "AttemptOpened"])
      _ = try await fixture.answer(second)
      // The code of one attempt is no code of another.
      let codes = try await fixture.codes()
      #expect(codes.count == 2)
    }
  }

  @Test("CO-11 a cancelled attempt records nothing but an audit line, and cannot go on")
  func cancel() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      let mails = try await fixture.count("send_queue")
      let id = Identifier()
      for _ in 0..<2 { try await fixture.cancel(attempt, requestID: id) }
      try await fixture.cancel(attempt)
      #expect(try await refusal { try await fixture.confirm(attempt) }.reason == "ATTEMPT_CLOSED")
      #expect(try await refusal { try await fixture.answer(attempt) }.reason == "ATTEMPT_CLOSED")
      #expect(try await fixture.count("confirmations") == 0)
      #expect(try await fixture.count("send_queue") == mails)
      #expect(try await fixture.events().filter { $0 == "AttemptCancelled" }.count == 1)
      #expect(try await fixture.audit().filter { $0 == "attempt_cancelled" }.count == 1)
    }
  }

  @Test("OP-38 an administrator who is removed or replaced loses the attempt at once", arguments: [true, false])
  func removed(_ isReplaced: Bool) async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      if isReplaced {
        _ = try await fixture.designate(ConfirmationFixture.contact("Sam"))
      } else {
        try await fixture.remove(.administrator)
      }
      for call in [{ _ = try await fixture.answer(attempt) }, { _ = try await fixture.confirm(attempt) }] {
        #expect(try await refusal(call).code == .notFound)
      }
      #expect(try await fixture.count("attempts WHERE close_reason = 'designation_removed'") == 1)
      #expect(try await fixture.events().contains("AttemptCancelled"))
      // Designated again, the old attempt stays ended.
      _ = try await fixture.designate()
      #expect(try await refusal { try await fixture.confirm(attempt) }.code == .notFound)
      #expect(try await fixture.count("confirmations") == 0)
    }
  }

  @Test("OP-38 a beginning under way while the designation ends comes too late")
  func openMeanwhile() async throws {
    try await ConfirmationFixture.with { fixture in
      let designation = try await fixture.designate()[0].designationID
      try await fixture.forgetMails()
      let error = try await fixture.interleaving(fixture.owner, "UPDATE designations SET remove_time = now()") {
        try await refusal { try await fixture.open(designation) }
      }
      #expect(error.code == .notFound)
      #expect(try await fixture.count("attempts") + fixture.count("send_queue") == 0)
    }
  }

  @Test("OP-38 a confirmation under way while the attempt ends records nothing")
  func confirmMeanwhile() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      let end: Query = "UPDATE attempts SET close_time = now(), close_reason = 'designation_removed'"
      let error = try await fixture.interleaving(fixture.owner, end) {
        try await refusal { try await fixture.confirm(attempt) }
      }
      #expect(error.reason == "ATTEMPT_CLOSED")
      #expect(try await fixture.count("confirmations") == 0)
    }
  }

  @Test("CO-8 nobody but the administrator in force acts: not the owner, the backup, or anybody else")
  func others() async throws {
    try await ConfirmationFixture.with { fixture in
      let made = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      let attempt = try await fixture.open(made[0].designationID).attemptID
      _ = try await fixture.answer(attempt)
      let missing = "\(Identifier())"
      for caller in [fixture.owner, fixture.bert, fixture.stranger] {
        let steps: [(String, (String) async throws -> Void)] = [
          (made[0].designationID, { _ = try await fixture.open($0, by: caller) }),
          (attempt, { _ = try await fixture.answer($0, by: caller) }),
          (attempt, { _ = try await fixture.confirm($0, by: caller) }),
          (attempt, { try await fixture.cancel($0, by: caller) }),
        ]
        for (id, step) in steps {
          let (foreign, none) = (
            try await refusal { try await step(id) }, try await refusal { try await step(missing) }
          )
          #expect(foreign.code == .notFound && foreign.message == none.message)
        }
      }
      // CO-5: the backup's own designation does not open an attempt either.
      #expect(try await refusal { try await fixture.open(made[1].designationID, by: fixture.bert) }.code == .notFound)
      #expect(try await fixture.count("attempts") == 1)
      #expect(try await fixture.count("confirmations") == 0)
    }
  }

  @Test("CO-8 the owner cannot act for themselves, even with the administrator's address")
  func ownAdministrator() async throws {
    try await ConfirmationFixture.with { fixture in
      let designation = try await fixture.designate()[0].designationID
      fixture.standIns.change(fixture.owner) { $0.email = "dora@afterthoughts.example" }
      #expect(try await refusal { try await fixture.open(designation, by: fixture.owner) }.code == .notFound)
    }
  }

  @Test("OP-36 an administrator whose address is not proved, or another one by now, acts no more")
  func unverified() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.passed()
      let designation = try await fixture.current()[0].designationID
      fixture.standIns.change(fixture.dora) { $0.emailVerified = false }
      let steps: [() async throws -> Void] = [
        { _ = try await fixture.open(designation) }, { _ = try await fixture.answer(attempt) },
        { _ = try await fixture.confirm(attempt) }, { try await fixture.cancel(attempt) },
      ]
      for step in steps {
        let error = try await refusal(step)
        #expect((error.code, error.reason) == (.failedPrecondition, "EMAIL_NOT_VERIFIED"))
      }
      fixture.standIns.change(fixture.dora) { ($0.emailVerified, $0.email) = (true, "moved@afterthoughts.example") }
      for step in steps { #expect(try await refusal(step).code == .notFound) }
      #expect(try await fixture.count("confirmations") == 0)
    }
  }

  @Test("CO-9 a repeated beginning gives the same attempt and one code; malformed ids are named")
  func repeats() async throws {
    try await ConfirmationFixture.with { fixture in
      let designation = try await fixture.designate()[0].designationID
      let id = Identifier()
      let attempt = try await fixture.open(designation, requestID: id)
      #expect(try await fixture.open(designation, requestID: id) == attempt)
      #expect(try await fixture.codes().count == 1)
      let other = try await refusal { try await fixture.open("\(Identifier())", requestID: id) }
      #expect(other.reason == "REQUEST_ID_REUSED")
      #expect(try await refusal { try await fixture.open("x") }.violations.map(\.field) == ["designation_id"])
      let steps: [() async throws -> Void] = [
        { _ = try await fixture.answer("x") }, { _ = try await fixture.confirm("x") },
        { try await fixture.cancel("x") },
      ]
      for step in steps { #expect(try await refusal(step).violations.map(\.field) == ["attempt_id"]) }
    }
  }

  @Test("OP-11 no code, answer or mail stands in the database in clear")
  func dump() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      let code = try #require(try await fixture.codes().first)
      _ = try await refusal { try await fixture.answer(attempt, "Wrong Street 7") }
      _ = try await fixture.answer(attempt)
      let dump = try await fixture.dump()
      #expect(dump.contains("dora@afterthoughts.example"), "the dump is of the right schema")
      // Six digits may be part of a time or an id by chance: they are looked for as a word, and as bytes.
      #expect(!dump.split { !$0.isASCII || !($0.isLetter || $0.isNumber) }.contains { $0 == code })
      #expect(!dump.contains(Hex.encode(code.utf8)))
      for secret in ["Wrong Street 7", ConfirmationFixture.answer, "Dora's question?"] {
        #expect(!dump.contains(secret) && !dump.contains(Hex.encode(secret.utf8)))
      }
    }
  }
}

extension ConfirmationFixture {
  /// Every row of every table of the schema as text; bytes as hexadecimal. Fractions of seconds are left out.
  func dump() async throws -> String {
    let tables = try await database.query(
      "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'confirmation'")
    var text = ""
    for table in try tables.map({ try $0.decode(String.self, at: 0) }) {
      let rows = try await database.query(
        #"SELECT regexp_replace(t::text, '(\d\d:\d\d:\d\d)\.\d+', '\1', 'g') FROM \#(unescaped: table) AS t"#)
      for row in rows { text += try row.decode(String.self, at: 0) + "\n" }
    }
    return text
  }
}
