import API
import Postgres
import Primitives
import TestKit
import Testing
import identity

struct SignInThrottleTests {
  private let start = Instant(seconds: 1_800_000_000)

  private func fail(_ throttle: inout SignInThrottle, times: Int, at now: Instant) {
    for _ in 0..<times { throttle.fail(at: now) }
  }

  @Test("OP-12 four failures do not lock, the fifth locks for 15 minutes")
  func five() {
    var throttle = SignInThrottle()
    fail(&throttle, times: 4, at: start)
    #expect(throttle.lock(at: start) == nil)
    throttle.fail(at: start)
    #expect(throttle.lock(at: start) == .seconds(900))
    #expect(throttle.lock(at: start.advanced(by: .seconds(899))) == .seconds(1))
    #expect(throttle.lock(at: start.advanced(by: .seconds(900))) == nil)
  }

  @Test("OP-12 only failures of the last 15 minutes count", arguments: [(899, true), (900, false)])
  func window(seconds: Int, locks: Bool) {
    var throttle = SignInThrottle()
    fail(&throttle, times: 4, at: start)
    let later = start.advanced(by: .seconds(seconds))
    throttle.fail(at: later)
    #expect((throttle.lock(at: later) != nil) == locks)
  }

  @Test("OP-12 a lock has a fixed end: tries during it neither extend nor count")
  func fixedEnd() {
    var throttle = SignInThrottle()
    fail(&throttle, times: 5, at: start)
    let locked = throttle
    fail(&throttle, times: 50, at: start.advanced(by: .seconds(600)))
    #expect(throttle == locked)
  }

  @Test("OP-12 locks double up to 24 hours while failures go on, and begin short again a day after the last")
  func doubling() {
    var throttle = SignInThrottle()
    var now = start
    var lengths: [Int64] = []
    for _ in 0..<10 {
      fail(&throttle, times: 5, at: now)
      let length = throttle.lock(at: now) ?? .zero
      lengths.append(length.components.seconds / 60)
      now = now.advanced(by: length)
    }
    #expect(lengths == [15, 30, 60, 120, 240, 480, 960, 1440, 1440, 1440])
    now = now.advanced(by: .seconds(86_400))
    fail(&throttle, times: 5, at: now)
    #expect(throttle.lock(at: now) == .seconds(900))
  }
}

struct LockoutTests {
  private static let unknown = "nobody@afterthoughts.example"
  private static let known = "anna@afterthoughts.example"

  /// Moves every throttle into the past.
  private static func pass(_ interval: String, _ fixture: IdentityFixture) async throws {
    try await fixture.database.execute(
      """
      UPDATE sign_in_throttles SET locked_until = locked_until - \(interval)::text::interval,
        failure_times = ARRAY(SELECT t - \(interval)::text::interval FROM unnest(failure_times) AS t)
      """)
  }

  private static func failFiveTimes(_ email: String, _ fixture: IdentityFixture) async throws {
    for _ in 0..<5 {
      let error = try await refusal { _ = try await fixture.logIn(email: email, password: "not the password") }
      #expect(error.reason == "BAD_CREDENTIALS")
    }
  }

  @Test("ID-12 the sixth try is locked, even with the right password, for known and unknown addresses alike")
  func locks() async throws {
    try await IdentityFixture.with { fixture in
      let id = try await fixture.register().accountID
      var errors: [ServiceError] = []
      for email in [LockoutTests.known, LockoutTests.unknown] {
        try await LockoutTests.failFiveTimes(email, fixture)
        errors.append(try await refusal { _ = try await fixture.logIn(email: email) })
      }
      for error in errors {
        #expect(error.code == .resourceExhausted && error.reason == "SIGN_IN_LOCKED")
        #expect(error.message == errors[0].message)
        let wait = try #require(error.retryAfter)
        #expect(wait > .seconds(890) && wait <= .seconds(900))
      }
      #expect(try await fixture.activity(id).filter { $0 == "sign_in_failed" }.count == 5)
      #expect(try await fixture.count("sessions") == 1)
    }
  }

  @Test("OP-12 after the lock's end the right password passes and clears the count")
  func unlocks() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      try await LockoutTests.failFiveTimes(LockoutTests.known, fixture)
      try await LockoutTests.pass("14 minutes", fixture)
      #expect(try await refusal { _ = try await fixture.logIn() }.reason == "SIGN_IN_LOCKED")
      try await LockoutTests.pass("1 minute", fixture)
      _ = try await fixture.logIn()
      #expect(try await fixture.count("sign_in_throttles") == 0)
    }
  }

  @Test("OP-12 tries during a lock do not extend it; the next lock is twice as long")
  func doubles() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      try await LockoutTests.failFiveTimes(LockoutTests.known, fixture)
      let before = try await fixture.dumpThrottles()
      for _ in 0..<3 {
        #expect(try await refusal { _ = try await fixture.logIn(password: "wrong again") }.reason == "SIGN_IN_LOCKED")
      }
      #expect(try await fixture.dumpThrottles() == before)

      try await LockoutTests.pass("15 minutes", fixture)
      try await LockoutTests.failFiveTimes(LockoutTests.known, fixture)
      let wait = try #require(try await refusal { _ = try await fixture.logIn() }.retryAfter)
      #expect(wait > .seconds(1790) && wait <= .seconds(1800))
    }
  }

  @Test("OP-12 the right password in between clears the failures")
  func clears() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      for _ in 0..<3 {
        for _ in 0..<4 { _ = try await refusal { _ = try await fixture.logIn(password: "not the password") } }
        _ = try await fixture.logIn()
      }
    }
  }

  @Test("OP-12 of many tries at once five are told that they are wrong")
  func parallel() async throws {
    try await IdentityFixture.with { fixture in
      _ = try await fixture.register()
      let reasons = await withTaskGroup(of: String.self) { group in
        for _ in 0..<20 {
          group.addTask {
            (try? await refusal { _ = try await fixture.logIn(password: "not the password") })?.reason ?? ""
          }
        }
        return await group.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
      }
      #expect(reasons == ["BAD_CREDENTIALS": 5, "SIGN_IN_LOCKED": 15])
      #expect(try await refusal { _ = try await fixture.logIn() }.reason == "SIGN_IN_LOCKED")
    }
  }
}

extension IdentityFixture {
  fileprivate func dumpThrottles() async throws -> [String] {
    try await database.query("SELECT t::text FROM sign_in_throttles AS t").map { try $0.decode(String.self, at: 0) }
  }
}
