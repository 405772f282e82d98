import API
import Postgres
import Primitives
import TestKit
import Testing
import confirmation

struct DesignationTests {
  @Test("CO-1 a recipient or a new contact can be designated, and told (CO-3)")
  func designate() async throws {
    try await ConfirmationFixture.with { fixture in
      let recipient = fixture.standIns.addRecipient(
        of: fixture.owner, .init(name: "Dora D", email: "Dora@afterthoughts.example", phone: "+12345678"))
      let made = try await fixture.designate(
        .init(person: .recipientID(recipient)), backup: ConfirmationFixture.contact("Bert"))
      #expect(made.map(\.role) == [.administrator, .backup])
      #expect(made[0].contact == .init(name: "Dora D", email: "Dora@afterthoughts.example", phone: "+12345678"))
      #expect(made[1].contact == .init(name: "Bert", email: "bert@afterthoughts.example"))
      #expect(made.map(\.recipientID) == [recipient, ""])
      #expect(made.allSatisfy { Identifier($0.designationID) != nil && $0.createTime != nil })
      #expect(try await fixture.current() == made)
      #expect(try await fixture.told() == ["role administrator Dora", "role backup bert"])
      #expect(try await fixture.events() == ["AdministratorDesignated", "AdministratorDesignated"])
      #expect(try await fixture.audit() == ["designated_administrator", "designated_backup"])
    }
  }

  @Test("CO-4 designations are read by their owner alone")
  func reading() async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.designate()
      for other in [fixture.dora, fixture.stranger] { #expect(try await fixture.current(of: other) == []) }
      #expect(try await fixture.verifications(by: fixture.owner) == [])
    }
  }

  @Test("CO-6 the state tells whether there is an administrator and a backup")
  func state() async throws {
    try await ConfirmationFixture.with { fixture in
      #expect(try await fixture.state() == .init())
      _ = try await fixture.designate()
      #expect(try await fixture.state() == .init(hasAdministrator: true))
      _ = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      #expect(try await fixture.state() == .init(hasAdministrator: true, hasBackup: true))
      #expect(try await fixture.state(of: fixture.dora) == .init())
      try await fixture.remove(.administrator)
      #expect(try await fixture.state() == .init())
    }
  }

  @Test("CO-2 another person takes the place of the one before, who is told; who stays hears nothing")
  func replace() async throws {
    try await ConfirmationFixture.with { fixture in
      let first = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      try await fixture.forgetMails()
      let second = try await fixture.designate(
        ConfirmationFixture.contact("Sam"), backup: ConfirmationFixture.contact("Bert"))
      #expect(second[0].contact?.name == "Sam" && second[0].designationID != first[0].designationID)
      #expect(second[1] == first[1])
      #expect(try await fixture.told() == ["end administrator dora", "role administrator sam"])
      try await fixture.forgetMails()
      #expect(try await fixture.designate(ConfirmationFixture.contact("Sam")) == [second[0]])
      #expect(try await fixture.told() == ["end backup bert"])
      #expect(try await fixture.events().filter { $0 == "DesignationRemoved" }.count == 2)
      #expect(try await fixture.count("designations") == 3)
    }
  }

  @Test("CO-2 the same person under new details stays designated, without a mail, and an attempt goes on")
  func sameDetails() async throws {
    try await ConfirmationFixture.with { fixture in
      let attempt = try await fixture.opened().attemptID
      let old = try await fixture.current()[0]
      try await fixture.forgetMails()
      let new = try await fixture.designate(
        .init(person: .contact(.init(name: "Dora Lund", email: "DORA@afterthoughts.example", phone: "+12345678"))))
      #expect(new.map(\.designationID) == [old.designationID])
      #expect(new[0].contact == .init(name: "Dora Lund", email: "DORA@afterthoughts.example", phone: "+12345678"))
      #expect(try await fixture.count("send_queue") == 0)
      #expect(try await fixture.count("attempts WHERE close_time IS NULL AND attempt_id = '\(attempt)'") == 1)
    }
  }

  @Test("CO-2 administrator and backup can change places")
  func swap() async throws {
    try await ConfirmationFixture.with { fixture in
      _ = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      let swapped = try await fixture.designate(
        ConfirmationFixture.contact("Bert"), backup: ConfirmationFixture.contact("Dora"))
      #expect(swapped.map(\.contact?.name) == ["Bert", "Dora"])
      #expect(try await fixture.verifications(by: fixture.bert).map(\.designationID) == [swapped[0].designationID])
    }
  }

  @Test("OP-38 removing the administrator removes the backup too; the backup can go alone")
  func remove() async throws {
    try await ConfirmationFixture.with { fixture in
      #expect(try await refusal { try await fixture.remove(.administrator) }.code == .notFound)
      _ = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      try await fixture.remove(.backup)
      #expect(try await fixture.current().map(\.role) == [.administrator])
      #expect(try await refusal { try await fixture.remove(.backup) }.code == .notFound)
      _ = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      try await fixture.forgetMails()
      try await fixture.remove(.administrator)
      #expect(try await fixture.current() == [])
      #expect(try await fixture.told() == ["end administrator dora", "end backup bert"])
      for role in [ConfirmationV1.Role.unspecified, .init(rawValue: 3)] {
        #expect(try await refusal { try await fixture.remove(role) }.violations.map(\.field) == ["role"])
      }
    }
  }

  @Test("OP-36 neither may be the owner, whatever the spelling, and they must differ")
  func differ() async throws {
    try await ConfirmationFixture.with { fixture in
      let me = ConfirmationV1.Designee(person: .contact(.init(name: "Me", email: "ANNA@afterthoughts.example")))
      let recipient = fixture.standIns.addRecipient(
        of: fixture.owner, .init(name: "Dora", email: "DORA@afterthoughts.example"))
      let same = ConfirmationV1.Designee(person: .recipientID(recipient))
      let cases: [(ConfirmationV1.Designee, ConfirmationV1.Designee?, String)] = [
        (me, nil, "administrator"), (ConfirmationFixture.contact("Dora"), me, "backup"),
        (ConfirmationFixture.contact("Dora"), same, "backup"),
      ]
      for (administrator, backup, field) in cases {
        let error = try await refusal { try await fixture.designate(administrator, backup: backup) }
        #expect((error.code, error.violations.map(\.field)) == (.invalidArgument, [field]))
      }
      #expect(try await fixture.count("designations") + fixture.count("send_queue") + fixture.count("audit") == 0)
    }
  }

  @Test("CO-1 wrong fields are named by their path; another's recipient is NOT_FOUND")
  func faults() async throws {
    try await ConfirmationFixture.with { fixture in
      let wrong = ConfirmationV1.Designee(
        person: .contact(.init(name: String(repeating: "a", count: 81), email: "x", phone: "12345678")))
      let first = try await refusal { try await fixture.designate(wrong) }
      #expect(
        first.violations.map(\.field) == ["name", "email", "phone"].map { "administrator.contact.\($0)" })
      let second = try await refusal {
        try await fixture.designate(backup: .init(person: .contact(.init(name: "B", email: "b"))))
      }
      #expect(second.violations.map(\.field) == ["backup.contact.email"])
      #expect(try await refusal { try await fixture.designate(nil) }.violations.map(\.field) == ["administrator"])
      #expect(try await refusal { try await fixture.designate(.init()) }.violations.map(\.field) == ["administrator"])
      let malformed = try await refusal { try await fixture.designate(.init(person: .recipientID("x"))) }
      #expect(malformed.violations.map(\.field) == ["administrator.recipient_id"])
      let foreign = fixture.standIns.addRecipient(
        of: fixture.stranger, .init(name: "Dora", email: "dora@afterthoughts.example"))
      for id in [foreign, "\(Identifier())"] {
        #expect(try await refusal { try await fixture.designate(.init(person: .recipientID(id))) }.code == .notFound)
      }
      #expect(try await fixture.count("designations") == 0)
    }
  }

  @Test("OP-13 whoever has not proved their address designates nobody and sees no verification")
  func unverified() async throws {
    try await ConfirmationFixture.with { fixture in
      fixture.standIns.change(fixture.owner) { $0.emailVerified = false }
      let error = try await refusal { try await fixture.designate() }
      #expect((error.code, error.reason) == (.failedPrecondition, "EMAIL_NOT_VERIFIED"))
      #expect(
        try await refusal { try await fixture.verifications(by: fixture.owner) }.reason == "EMAIL_NOT_VERIFIED")
      #expect(try await fixture.count("designations") + fixture.count("send_queue") == 0)
    }
  }

  @Test("CO-7 an administrator sees who designated them, newest first; a backup does not")
  func verifications() async throws {
    try await ConfirmationFixture.with { fixture in
      let annas = try await fixture.designate(backup: ConfirmationFixture.contact("Bert"))
      let sams = try await fixture.designate(by: fixture.stranger)
      let list = try await fixture.verifications(by: fixture.dora)
      #expect(list.map(\.designationID) == [sams[0].designationID, annas[0].designationID])
      #expect(list.map(\.displayName) == ["Sam", "Anna Berg"])
      #expect(list.map(\.accountID) == ["\(fixture.stranger)", "\(fixture.owner)"])
      #expect(list.allSatisfy { $0.status == .active && $0.designateTime != nil })
      #expect(try await fixture.verifications(by: fixture.bert) == [])
      try await fixture.remove(.administrator)
      #expect(try await fixture.verifications(by: fixture.dora).map(\.displayName) == ["Sam"])
      // Whoever holds the address now is the administrator.
      fixture.standIns.change(fixture.dora) { $0.email = "moved@afterthoughts.example" }
      #expect(try await fixture.verifications(by: fixture.dora) == [])
    }
  }

  @Test("CO-1 a repeated request gives the same answer and one effect; with another body it is refused")
  func repeats() async throws {
    try await ConfirmationFixture.with { fixture in
      let id = Identifier()
      let made = try await fixture.designate(requestID: id)
      #expect(try await fixture.designate(requestID: id) == made)
      let other = try await refusal { try await fixture.designate(ConfirmationFixture.contact("Sam"), requestID: id) }
      #expect((other.code, other.reason) == (.invalidArgument, "REQUEST_ID_REUSED"))
      #expect(try await fixture.count("send_queue") == 1)
      for _ in 0..<2 { try await fixture.remove(.administrator, requestID: id) }
      #expect(try await refusal { try await fixture.remove(.backup, requestID: id) }.reason == "REQUEST_ID_REUSED")
      #expect(try await fixture.count("send_queue") == 2)
    }
  }

  @Test("CO-2 two designations at once leave one administrator")
  func parallel() async throws {
    try await ConfirmationFixture.with { fixture in
      async let first = fixture.designate()
      async let second = fixture.designate(ConfirmationFixture.contact("Sam"))
      _ = try await (first, second)
      #expect(try await fixture.count("designations WHERE remove_time IS NULL") == 1)
    }
  }

  @Test("CO-1 with the neighbours out of reach every call but the reading is UNAVAILABLE and changes nothing")
  func unavailable() async throws {
    try await ConfirmationFixture.with(neighbours: false) { fixture async throws in
      let id = "\(Identifier())"
      let calls: [() async throws -> Void] = [
        { _ = try await fixture.designate() }, { try await fixture.remove(.administrator) },
        { _ = try await fixture.verifications(by: fixture.dora) }, { _ = try await fixture.open(id) },
        { _ = try await fixture.answer(id) }, { _ = try await fixture.confirm(id) }, { try await fixture.cancel(id) },
      ]
      for call in calls { #expect(try await refusal(call).code == .unavailable) }
      #expect(try await fixture.current() == [])
      #expect(try await fixture.count("requests") == 0)
    }
  }
}
