import API
import EventLoop
import Postgres
import Primitives
import RPC
import ServiceKit
import Synchronization
import TestKit
import Testing

/// A notifications service that answers as a test says, and remembers what it was asked.
final class StandInSends: NotificationsV1.SendService {
  let answers = Mutex<[String: ServiceError]>([:])
  let taken = Mutex<[NotificationsV1.SendRequest]>([])

  func send(
    _ request: NotificationsV1.SendRequest, _ context: CallContext
  ) async throws -> NotificationsV1.SendResponse {
    if let error = answers.withLock({ $0[request.requestID] }) { throw error }
    taken.withLock { $0.append(request) }
    return .init(notificationID: request.requestID)
  }

  var ids: [String] { taken.withLock { $0.map(\.requestID).sorted() } }
}

@Suite struct CourierTests {
  static let link = "https://afterthoughts.example/message/secret-of-the-link"

  struct Fixture: Sendable {
    let runtime: ServiceRuntime
    let courier: Courier
    let sends: StandInSends

    static func with(_ body: (Fixture) async throws -> Void) async throws {
      let sends = StandInSends()
      try await TestRuntime.with(name: "kit", migrations: [], neighbours: ["notifications": [sends]]) { runtime in
        try await body(Fixture(runtime: runtime, courier: try runtime.courier(), sends: sends))
      }
    }

    func request(_ id: Identifier) -> NotificationsV1.SendRequest {
      .init(
        requestID: "\(id)", addressee: .init(name: "Anna", email: "anna@example.com"),
        content: .messageNotice(.init(senderName: "Karl", link: CourierTests.link)))
    }

    func enqueue(_ ids: Identifier...) async throws {
      try await runtime.database.transaction { try await courier.enqueue(ids.map(request), in: $0) }
    }

    /// Each queued id with how often it was tried and why it was refused.
    func queue() async throws -> [String: String] {
      let rows = try await runtime.database.query("SELECT send_id, attempts, coalesce(refused, '-') FROM send_queue")
      return Dictionary(
        uniqueKeysWithValues: try rows.map { row in
          let (id, attempts, refused) = try row.decode((Identifier, Int32, String).self)
          return ("\(id)", "\(attempts) \(refused)")
        })
    }
  }

  @Test("NO-6 what was taken over leaves the queue; what was undone was never in it")
  func success() async throws {
    try await Fixture.with { fixture in
      let (first, second, undone) = (Identifier(), Identifier(), Identifier())
      try await fixture.enqueue(first, second)
      try await fixture.enqueue(first)
      struct Undone: Error {}
      await #expect(throws: Undone.self) {
        try await fixture.runtime.database.transaction { transaction in
          try await fixture.courier.enqueue(fixture.request(undone), in: transaction)
          throw Undone()
        }
      }
      #expect(try await fixture.queue().count == 2)
      #expect(try await fixture.courier.handOver() == 2)
      #expect(fixture.sends.ids == ["\(first)", "\(second)"].sorted())
      #expect(fixture.sends.taken.withLock { $0.contains(fixture.request(first)) })
      #expect(try await fixture.queue().isEmpty)
      #expect(try await fixture.courier.handOver() == 0)
    }
  }

  @Test("D6 UNAVAILABLE keeps a notification for later, INVALID_ARGUMENT parks it, neither holds up the others")
  func failures() async throws {
    try await Fixture.with { fixture in
      let (down, wrong, fine) = (Identifier(), Identifier(), Identifier())
      fixture.sends.answers.withLock {
        $0["\(down)"] = .unavailable("down")
        $0["\(wrong)"] = .invalid("addressee.name", "must be one line")
      }
      try await fixture.enqueue(down, wrong, fine)
      #expect(try await fixture.courier.handOver() == 1)
      #expect(fixture.sends.ids == ["\(fine)"])
      #expect(try await fixture.queue() == ["\(down)": "1 -", "\(wrong)": "0 INVALID_FIELD"])
      // Not before its time; then once more, and after that no more.
      #expect(try await fixture.courier.handOver() == 0)
      try await fixture.runtime.database.execute("UPDATE send_queue SET next_attempt_time = now()")
      fixture.sends.answers.withLock { $0 = [:] }
      #expect(try await fixture.courier.handOver() == 1)
      #expect(try await fixture.queue() == ["\(wrong)": "0 INVALID_FIELD"])
    }
  }

  @Test("D6 with notifications out of reach everything stays queued, with growing pauses up to 30 s")
  func outOfReach() async throws {
    try await TestRuntime.with(name: "kit", migrations: []) { runtime in
      let fixture = Fixture(runtime: runtime, courier: try runtime.courier(), sends: StandInSends())
      try await fixture.enqueue(Identifier())
      var pauses: [Double] = []
      for _ in 0..<10 {
        #expect(try await fixture.courier.handOver() == 0)
        let rows = try await runtime.database.query(
          "SELECT extract(epoch FROM next_attempt_time - now())::float8 FROM send_queue")
        pauses.append(try rows[0].decode(Double.self, at: 0))
        try await runtime.database.execute("UPDATE send_queue SET next_attempt_time = now()")
      }
      #expect(try await fixture.queue().values.first == "10 -")
      #expect(pauses[0] <= 0.2 && pauses[9] <= 30 && pauses[9] > 20)
    }
  }

  @Test("D6 a queued notification that cannot be opened does not hold up the others")
  func damaged() async throws {
    try await Fixture.with { fixture in
      let (damaged, fine) = (Identifier(), Identifier())
      try await fixture.enqueue(damaged, fine)
      try await fixture.runtime.database.execute(
        """
        UPDATE send_queue SET sealed = '\\x00', next_attempt_time = now() - interval '1 hour' WHERE send_id = \(damaged)
        """)
      #expect(try await fixture.courier.handOver() == 1)
      #expect(try await fixture.queue() == ["\(damaged)": "1 -"])
    }
  }

  @Test("3.15 a queued notification shows neither link nor address")
  func sealed() async throws {
    try await Fixture.with { fixture in
      try await fixture.enqueue(Identifier())
      let rows = try await fixture.runtime.database.query("SELECT send_queue::text, sealed FROM send_queue")
      let (text, sealed) = try rows[0].decode((String, [UInt8]).self)
      for part in ["secret-of-the-link", "anna@example.com", "Karl"] {
        #expect(!text.contains(part) && !String(decoding: sealed, as: UTF8.self).contains(part))
      }
    }
  }

  @Test("NO-6 the worker takes up what is queued while it runs")
  func worker() async throws {
    try await Fixture.with { fixture in
      let worker = Task(executorPreference: fixture.runtime.group.next()) { await fixture.courier.run() }
      try await fixture.enqueue(Identifier(), Identifier())
      try await eventually("an empty queue") { try await fixture.queue().isEmpty }
      #expect(fixture.sends.ids.count == 2)
      worker.cancel()
      await worker.value
    }
  }

  @Test("ServiceKit an id that is no UUID cannot be queued")
  func noUUID() async throws {
    try await Fixture.with { fixture in
      var request = fixture.request(Identifier())
      request.requestID = "x"
      let faulty = request
      let refused = try await refusal {
        try await fixture.runtime.database.transaction { try await fixture.courier.enqueue(faulty, in: $0) }
      }
      #expect(refused.code == .invalidArgument)
    }
  }
}
