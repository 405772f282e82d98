package import Primitives

/// When password sign-in for one address is locked (OP-12). Pure: the time is an argument.
package struct SignInThrottle: Sendable, Equatable {
  package static let failuresMax = 5
  package static let window: Duration = .seconds(15 * 60)
  package static let lockShortest: Duration = .seconds(15 * 60)
  package static let lockLongest: Duration = .seconds(24 * 3600)
  /// After so long without a lock the next one is short again.
  package static let memory: Duration = .seconds(24 * 3600)

  /// The failures that may still count, oldest first.
  package private(set) var failures: [Instant]
  /// How often it was locked in a row.
  package private(set) var lockCount: Int
  package private(set) var lockedUntil: Instant?

  package init(failures: [Instant] = [], lockCount: Int = 0, lockedUntil: Instant? = nil) {
    self.failures = failures
    self.lockCount = lockCount
    self.lockedUntil = lockedUntil
  }

  /// How long the lock still lasts; nil when there is none.
  package func lock(at now: Instant) -> Duration? {
    guard let lockedUntil, now < lockedUntil else { return nil }
    return now.duration(to: lockedUntil)
  }

  /// Counts a failure. During a lock nothing changes, so that a lock has a fixed end.
  package mutating func fail(at now: Instant) {
    guard lock(at: now) == nil else { return }
    if let lockedUntil, lockedUntil.advanced(by: SignInThrottle.memory) <= now { lockCount = 0 }
    failures = failures.filter { $0.advanced(by: SignInThrottle.window) > now } + [now]
    guard failures.count >= SignInThrottle.failuresMax else { return }
    let length = min(SignInThrottle.lockShortest * (1 << min(lockCount, 10)), SignInThrottle.lockLongest)
    lockedUntil = now.advanced(by: length)
    lockCount += 1
    failures = []
  }
}
