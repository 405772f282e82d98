internal import Postgres
internal import Primitives

/// Attempts and their challenges.
struct AttemptStore {
  private let transaction: Transaction

  init(_ transaction: Transaction) {
    self.transaction = transaction
  }

  /// How many challenges an administrator opened for a person in the last day, and when the oldest of them leaves that
  /// day.
  func recent(_ account: Identifier, _ administrator: Identifier) async throws -> (count: Int, waitSeconds: Double) {
    let rows = try await transaction.query(
      """
      SELECT count(*), coalesce(extract(epoch FROM min(open_time) + interval '24 hours' - now()), 0)::float8
      FROM attempts
      WHERE account_id = \(account) AND administrator_id = \(administrator) AND open_time > now() - interval '24 hours'
      """)
    guard let row = rows.first else { return (0, 0) }
    let (count, wait) = try row.decode((Int, Double).self)
    return (count, wait)
  }

  /// Returns when the challenge ends.
  func add(
    _ id: Identifier, _ designation: Designation, administrator: Identifier, codeDigest: [UInt8]
  ) async throws -> Instant {
    let minutes = Double(AttemptRules.challengeMinutes)
    let rows = try await transaction.query(
      """
      INSERT INTO attempts
        (attempt_id, designation_id, account_id, administrator_id, code_digest, challenge_expire_time)
      VALUES (\(id), \(designation.id), \(designation.account), \(administrator), \(codeDigest),
        now() + make_interval(secs => \(minutes * 60)))
      RETURNING challenge_expire_time
      """)
    guard let row = rows.first else { throw ServiceError.notFound("attempt") }
    return try row.decode(Instant.self, at: 0)
  }

  /// Ends the open attempts of a designation; returns them.
  func close(designation: Identifier, reason: String) async throws -> [Identifier] {
    try await transaction.query(
      """
      UPDATE attempts SET close_time = now(), close_reason = \(reason)
      WHERE designation_id = \(designation) AND close_time IS NULL RETURNING attempt_id
      """
    ).map { try $0.decode(Identifier.self, at: 0) }
  }

  /// Ends one attempt; false when it had ended before.
  func close(_ attempt: Identifier, reason: String) async throws -> Bool {
    try await transaction.execute(
      """
      UPDATE attempts SET close_time = now(), close_reason = \(reason)
      WHERE attempt_id = \(attempt) AND close_time IS NULL
      """) == 1
  }

  /// Marks the challenge as passed; returns until when the confirmation is open.
  func pass(_ attempt: Identifier) async throws -> Instant {
    let minutes = Double(AttemptRules.confirmMinutes)
    let rows = try await transaction.query(
      """
      UPDATE attempts SET pass_time = coalesce(pass_time, now()),
        confirm_expire_time = coalesce(confirm_expire_time, now() + make_interval(secs => \(minutes * 60)))
      WHERE attempt_id = \(attempt) AND close_time IS NULL
      RETURNING confirm_expire_time
      """)
    guard let row = rows.first else { throw ServiceError.precondition("ATTEMPT_CLOSED", "The attempt has ended.") }
    return try row.decode(Instant.self, at: 0)
  }

  /// The attempt and the database's time.
  func find(_ attempt: Identifier) async throws -> (attempt: Attempt, now: Instant)? {
    try AttemptStore.attempt(await transaction.query(AttemptStore.query(attempt)))
  }

  static func find(_ attempt: Identifier, in database: Database) async throws -> (attempt: Attempt, now: Instant)? {
    try self.attempt(await database.query(query(attempt)))
  }

  /// Takes one of the tries, before the answer is looked at. False when none is left.
  static func takeTry(_ attempt: Identifier, in database: Database) async throws -> Bool {
    try await database.execute(
      """
      UPDATE attempts SET tries = tries + 1
      WHERE attempt_id = \(attempt) AND tries < \(AttemptRules.triesMax) AND close_time IS NULL
      """) == 1
  }

  /// Gives a try back that could not be judged.
  static func giveTryBack(_ attempt: Identifier, in database: Database) async throws {
    _ = try await database.execute(
      "UPDATE attempts SET tries = tries - 1 WHERE attempt_id = \(attempt) AND tries > 0")
  }

  private static func query(_ attempt: Identifier) -> Query {
    """
    SELECT attempt_id, designation_id, account_id, administrator_id, code_digest, challenge_expire_time, tries,
      pass_time, confirm_expire_time, close_reason, now()
    FROM attempts WHERE attempt_id = \(attempt)
    """
  }

  private static func attempt(_ rows: [Row]) throws -> (attempt: Attempt, now: Instant)? {
    try rows.first.map { row in
      let attempt = Attempt(
        id: try row.decode(Identifier.self, at: 0), designation: try row.decode(Identifier.self, at: 1),
        account: try row.decode(Identifier.self, at: 2), administrator: try row.decode(Identifier.self, at: 3),
        codeDigest: try row.decode([UInt8].self, at: 4), challengeExpireTime: try row.decode(Instant.self, at: 5),
        tries: Int(try row.decode(Int32.self, at: 6)), passTime: try row.decode(Instant?.self, at: 7),
        confirmExpireTime: try row.decode(Instant?.self, at: 8), closeReason: try row.decode(String?.self, at: 9))
      return (attempt, try row.decode(Instant.self, at: 10))
    }
  }
}
