import API
import EventLoop
import Postgres
import Primitives
import Protobuf
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing
import confirmation

typealias Calls = ConfirmationV1.ConfirmationServiceMethods

/// The real handlers over a database of their own, four people, and stand-ins for identity and recipients.
struct ConfirmationFixture: Sendable {
  static let answer = "Rue de l'Église"

  let runtime: ServiceRuntime
  let service: ConfirmationService
  let designations: DesignationService
  let signingKey: SigningKey
  let standIns: StandIns
  /// Anna Berg, who designates.
  let owner: Identifier
  /// Dora, her administrator.
  let dora: Identifier
  /// Bert, her backup.
  let bert: Identifier
  /// Nobody to her.
  let stranger: Identifier

  var database: Database { runtime.database }

  static func with(
    neighbours areThere: Bool = true, _ body: @escaping @Sendable (ConfirmationFixture) async throws -> Void
  ) async throws {
    let standIns = StandIns()
    let people = ["Anna Berg", "Dora", "Bert", "Sam"].map { name in
      standIns.add(name, email: "\(name.split(separator: " ")[0].lowercased())@afterthoughts.example")
    }
    try await TestRuntime.with(
      name: "confirmation", migrations: Migrations.all, neighbours: areThere ? standIns.neighbours : [:]
    ) { runtime in
      let key = SigningKey.random()
      try await body(
        ConfirmationFixture(
          runtime: runtime, service: try ConfirmationService(runtime, signingKey: key),
          designations: DesignationService(runtime), signingKey: key, standIns: standIns, owner: people[0],
          dora: people[1], bert: people[2], stranger: people[3]))
    }
  }

  // MARK: Designations

  static func contact(_ name: String) -> ConfirmationV1.Designee {
    .init(person: .contact(.init(name: name, email: "\(name.lowercased())@afterthoughts.example")))
  }

  func designate(
    _ administrator: ConfirmationV1.Designee? = contact("Dora"), backup: ConfirmationV1.Designee? = nil,
    requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws -> [ConfirmationV1.Designation] {
    let request = ConfirmationV1.DesignateRequest(
      requestID: "\(requestID)", administrator: administrator, backup: backup)
    return try await service.designate(request, .owner(account ?? owner, Calls.designate)).designations
  }

  func current(of account: Identifier? = nil) async throws -> [ConfirmationV1.Designation] {
    try await service.getDesignations(.init(), .owner(account ?? owner, Calls.getDesignations)).designations
  }

  func remove(
    _ role: ConfirmationV1.Role, requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws {
    _ = try await service.removeDesignation(
      .init(requestID: "\(requestID)", role: role), .owner(account ?? owner, Calls.removeDesignation))
  }

  func verifications(by account: Identifier) async throws -> [ConfirmationV1.Verification] {
    try await service.listVerifications(.init(), .owner(account, Calls.listVerifications)).verifications
  }

  func state(of account: Identifier? = nil) async throws -> ConfirmationV1.GetDesignationStateResponse {
    try await designations.getDesignationState(
      .init(accountID: "\(account ?? owner)"),
      .service("vault", ConfirmationV1.DesignationServiceMethods.getDesignationState))
  }

  // MARK: Attempts

  func open(
    _ designationID: String, requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws -> ConfirmationV1.OpenAttemptResponse {
    try await service.openAttempt(
      .init(requestID: "\(requestID)", designationID: designationID), .owner(account ?? dora, Calls.openAttempt))
  }

  /// Dora is designated and has begun.
  func opened() async throws -> ConfirmationV1.OpenAttemptResponse {
    try await open(try await designate()[0].designationID)
  }

  func answer(
    _ attemptID: String, _ answer: String = ConfirmationFixture.answer, code: String? = nil,
    requestID: Identifier = Identifier(), by account: Identifier? = nil
  ) async throws -> ConfirmationV1.AnswerChallengeResponse {
    let mailed = try await codes().last ?? ""
    return try await service.answerChallenge(
      .init(requestID: "\(requestID)", attemptID: attemptID, securityAnswer: answer, code: code ?? mailed),
      .owner(account ?? dora, Calls.answerChallenge))
  }

  /// Dora has begun and passed the challenge.
  func passed() async throws -> String {
    let attempt = try await opened().attemptID
    _ = try await answer(attempt)
    return attempt
  }

  func confirm(
    _ attemptID: String, _ name: String = "Anna Berg", requestID: Identifier = Identifier(),
    by account: Identifier? = nil
  ) async throws -> ConfirmationV1.ConfirmPassingResponse {
    try await service.confirmPassing(
      .init(requestID: "\(requestID)", attemptID: attemptID, typedName: name),
      .owner(account ?? dora, Calls.confirmPassing))
  }

  func cancel(_ attemptID: String, requestID: Identifier = Identifier(), by account: Identifier? = nil) async throws {
    _ = try await service.cancelAttempt(
      .init(requestID: "\(requestID)", attemptID: attemptID), .owner(account ?? dora, Calls.cancelAttempt))
  }

  // MARK: What was left behind

  /// The mails that wait for the notifications service, oldest first.
  func mails() async throws -> [NotificationsV1.SendRequest] {
    guard let key = try await runtime.dataKeys.existingKey(for: DataKeys.serviceOwner, in: database) else { return [] }
    return try await database.query("SELECT send_id, sealed FROM send_queue ORDER BY create_time, send_id").map { row in
      let (id, sealed) = try row.decode((Identifier, [UInt8]).self)
      let binding = Binding(table: "send_queue", column: "sealed", row: id, owner: DataKeys.serviceOwner)
      return try NotificationsV1.SendRequest(serialized: try key.open(sealed, binding))
    }
  }

  /// The mailed codes, oldest first.
  func codes() async throws -> [String] {
    try await mails().compactMap { mail in
      guard case .challengeCode(let content) = mail.content else { return nil }
      return content.code
    }
  }

  /// What the waiting mails say and to whom, such as `role dora@…`, sorted.
  func told() async throws -> [String] {
    try await mails().map { mail in
      let what =
        switch mail.content {
        case .roleNotice(let notice): (notice.removed ? "end " : "role ") + (notice.backup ? "backup" : "administrator")
        case .challengeCode: "code"
        case .attemptAlert: "alert"
        case .passingNotice: "passing"
        default: "other"
        }
      return "\(what) \(mail.addressee?.email.split(separator: "@").first ?? "")"
    }.sorted()
  }

  /// The types of the published events, oldest first.
  func events() async throws -> [String] {
    try await database.query("SELECT type FROM outbox ORDER BY sequence").map { row in
      String(try row.decode(String.self, at: 0).split(separator: ".").last ?? "")
    }
  }

  func audit() async throws -> [String] {
    try await database.query("SELECT event FROM audit ORDER BY entry").map { try $0.decode(String.self, at: 0) }
  }

  func count(_ table: String) async throws -> Int {
    try await database.query("SELECT count(*) FROM \(unescaped: table)")[0].decode(Int.self)
  }

  func forgetMails() async throws {
    try await database.execute("DELETE FROM send_queue")
  }

  /// As if every attempt had come about that much earlier, in SQL's words.
  func ageAttempts(_ interval: String) async throws {
    try await database.execute(
      """
      UPDATE attempts SET open_time = open_time - interval '\(unescaped: interval)',
        challenge_expire_time = challenge_expire_time - interval '\(unescaped: interval)',
        confirm_expire_time = confirm_expire_time - interval '\(unescaped: interval)'
      """)
  }

  /// Runs `statement` under the account's lock as soon as `waiting` calls of `body` wait for it; then `body` goes on.
  func interleaving<Value: Sendable>(
    _ account: Identifier, waiting: Int = 1, _ statement: Query, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    async let held: Void = database.transaction { transaction in
      try await transaction.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || \("\(account)"), 0))")
      try await locks(granted: false, reach: waiting)
      try await transaction.execute(statement)
    }
    try await locks(granted: true, reach: 1)
    let value = try await body()
    try await held
    return value
  }

  /// Looks until so many advisory locks are held or waited for in this database; gives up at last.
  private func locks(granted: Bool, reach count: Int) async throws {
    for _ in 0..<20_000 {
      let found = try await database.query(
        """
        SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = \(granted)
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        """)[0].decode(Int.self)
      if found >= count { return }
    }
  }
}
