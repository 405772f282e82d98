internal import Primitives
internal import Sealing

/// An attempt as stored.
struct Attempt: Sendable {
  let id: Identifier
  let designation: Identifier
  let account: Identifier
  let administrator: Identifier
  let codeDigest: [UInt8]
  let challengeExpireTime: Instant
  let tries: Int
  let passTime: Instant?
  let confirmExpireTime: Instant?
  let closeReason: String?
}

/// When an attempt may go on; pure. Times are the database's.
enum AttemptRules {
  static let challengeMinutes = 10
  static let confirmMinutes = 10
  static let triesMax = 5
  static let challengesPerDay = 3

  static let explanation = """
    You are about to confirm that this person has passed away. Once confirmed, every message they prepared is delivered, \
    each on its day, to the people they chose; you gain access to what they left for you. A confirmation \
    cannot be undone, by you or by us. If you are not certain, cancel now: nothing has been recorded.
    """

  static let summary = """
    The passing is recorded. Messages for now are on their way; the others follow, each on its day. You, the backup \
    administrator and the person's own address are told by mail. You can follow the deliveries in your dashboard.
    """

  /// Six digits, each as likely as any other.
  static func newCode() -> String {
    let number = Int.random(in: 0..<1_000_000)
    let digits = String(number)
    return String(repeating: "0", count: 6 - digits.count) + digits
  }

  /// What a code's digest is made of: a code is good for its own attempt only.
  static func codeMessage(_ code: String, _ attempt: Identifier) -> [UInt8] {
    Array("challenge code".utf8) + attempt.bytes + Array(code.utf8)
  }

  /// The typed name is the person's name, whatever the case and spacing.
  static func isName(_ typed: String, _ name: String) -> Bool {
    Normalisation.answer(typed) == Normalisation.answer(name)
  }

  static func requireAnswerable(_ attempt: Attempt, now: Instant) throws(ServiceError) {
    try requireOpen(attempt)
    if attempt.passTime != nil { return }
    if now >= attempt.challengeExpireTime {
      throw .precondition("CHALLENGE_EXPIRED", "The challenge has ended; begin a new attempt.")
    }
    if attempt.tries >= triesMax {
      throw .precondition("CHALLENGE_SPENT", "All tries are used; begin a new attempt.")
    }
  }

  static func requireConfirmable(_ attempt: Attempt, now: Instant) throws(ServiceError) {
    try requireOpen(attempt)
    guard attempt.passTime != nil, let expire = attempt.confirmExpireTime else {
      throw .precondition("CHALLENGE_REQUIRED", "Answer the challenge first.")
    }
    if now >= expire { throw .precondition("CHALLENGE_EXPIRED", "The challenge has ended; begin a new attempt.") }
  }

  private static func requireOpen(_ attempt: Attempt) throws(ServiceError) {
    if attempt.closeReason != nil { throw .precondition("ATTEMPT_CLOSED", "The attempt has ended; begin a new one.") }
  }
}
