internal import Postgres
internal import Primitives
internal import Sealing
internal import ServiceKit

/// The throttles of all addresses, by a keyed digest, so that addresses without an account behave like the others and
/// a dump does not show them.
struct SignInThrottles: Sendable {
  let database: Database
  let dataKeys: DataKeys

  func digest(emailKey: String) async throws -> [UInt8] {
    let key = try await dataKeys.serviceKey(in: database)
    return key.authenticate(Array("sign-in \(emailKey)".utf8))
  }

  /// RESOURCE_EXHAUSTED (SIGN_IN_LOCKED) during a lock.
  func check(_ digest: [UInt8]) async throws {
    let rows = try await database.query(
      """
      SELECT failure_times, lock_count, locked_until, now() FROM sign_in_throttles WHERE email_digest = \(digest)
      """)
    if let row = rows.first { try SignInThrottles.refuseLocked(row) }
  }

  /// Counts a failure for good, in a transaction of its own. SIGN_IN_LOCKED, and nothing counted, when others have
  /// locked it meanwhile.
  func fail(_ digest: [UInt8], emailKey: String) async throws {
    try await database.transaction { transaction in
      let rows = try await transaction.query(
        """
        INSERT INTO sign_in_throttles (email_digest) VALUES (\(digest))
        ON CONFLICT (email_digest) DO UPDATE SET change_time = now()
        RETURNING failure_times, lock_count, locked_until, clock_timestamp()
        """)
      var (throttle, now) = try SignInThrottles.refuseLocked(rows[0])
      throttle.fail(at: now)
      try await transaction.execute(
        """
        UPDATE sign_in_throttles
        SET failure_times = \(throttle.failures), lock_count = \(Int32(throttle.lockCount)),
          locked_until = \(throttle.lockedUntil)
        WHERE email_digest = \(digest)
        """)
      try await ActivityLog(transaction).append(.signInFailed, emailKey: emailKey)
    }
  }

  /// Forgets the failures after a success. SIGN_IN_LOCKED when others have locked it meanwhile: of many tries at once,
  /// only the first few tell anything.
  func succeed(_ digest: [UInt8], in transaction: Transaction) async throws {
    let rows = try await transaction.query(
      """
      SELECT failure_times, lock_count, locked_until, clock_timestamp() FROM sign_in_throttles
      WHERE email_digest = \(digest) FOR UPDATE
      """)
    guard let row = rows.first else { return }
    try SignInThrottles.refuseLocked(row)
    try await transaction.execute("DELETE FROM sign_in_throttles WHERE email_digest = \(digest)")
  }

  @discardableResult
  private static func refuseLocked(_ row: Row) throws -> (SignInThrottle, now: Instant) {
    let (failures, lockCount, lockedUntil, now) = try row.decode(([Instant], Int32, Instant?, Instant).self)
    let throttle = SignInThrottle(failures: failures, lockCount: Int(lockCount), lockedUntil: lockedUntil)
    if let rest = throttle.lock(at: now) {
      throw ServiceError(
        .resourceExhausted, "Too many failed tries; sign-in with this address is locked for a while.",
        reason: "SIGN_IN_LOCKED", retryAfter: rest)
    }
    return (throttle, now)
  }
}
