import API
import EventLoop
import Events
import Postgres
import Primitives
import RPC
import ServiceKit
import Synchronization
import TestKit
import Testing

/// A calls B, B calls C, C works in PostgreSQL: what must travel down such a chain.
@Suite struct ChainTests {
  /// What each hop saw.
  struct Seen: Sendable {
    var left: [String: Duration] = [:]
    var traces: [String: TraceContext] = [:]
    var cancelled: Set<String> = []
  }

  final class Record: Sendable {
    private let seen = Mutex(Seen())
    var value: Seen { seen.withLock { $0 } }

    func arrived(_ name: String, _ context: CallContext) {
      let left = context.deadline.map { Monotonic.now().duration(to: $0) }
      seen.withLock {
        $0.left[name] = left
        $0.traces[name] = context.trace
      }
    }

    func ended(_ name: String) { if Task.isCancelled { seen.withLock { _ = $0.cancelled.insert(name) } } }
  }

  /// Runs `body` with a channel to A; `work` is what C does.
  private static func chain(
    _ work: @escaping @Sendable (CallContext, Database) async throws -> Void,
    _ body: (Channel, Record, ServiceRuntime) async throws -> Void
  ) async throws {
    try await TestRuntime.with(name: "chain", migrations: []) { runtime in
      let database = runtime.database
      try await database.execute("CREATE TABLE marks (mark text)")
      let record = Record()
      var rig = ProbeRig(group: runtime.group)
      let c = try rig.serve([
        ProbeService { context in
          record.arrived("C", context)
          defer { record.ended("C") }
          try await work(context, database)
        }
      ])
      let b = try rig.serve([ProbeService { try await Self.pass("B", $0, c, record) }])
      let a = try rig.serve([ProbeService { try await Self.pass("A", $0, b, record) }])
      let result: Result<Void, any Error>
      do {
        result = .success(try await body(a, record, runtime))
      } catch {
        result = .failure(error)
      }
      await rig.end()
      try result.get()
    }
  }

  private static func pass(_ name: String, _ context: CallContext, _ next: Channel, _ record: Record) async throws {
    record.arrived(name, context)
    defer { record.ended(name) }
    try await go(next, context.callOptions())
  }

  /// Whether a statement with the mark runs. Asked in a transaction: the shared connection may be the one that works.
  private static func isRunning(_ database: Database) async throws -> Bool {
    try await database.transaction { transaction in
      let rows = try await transaction.query(
        """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
          AND query LIKE '%chain-mark%'
        """)
      return try rows[0].decode(Int64.self, at: 0) > 0
    }
  }

  private static func marks(_ database: Database) async throws -> Int64 {
    try await database.query("SELECT count(*) FROM marks")[0].decode(Int64.self, at: 0)
  }

  private static let sleepInTransaction: @Sendable (CallContext, Database) async throws -> Void = { _, database in
    try await database.transaction { transaction in
      _ = try await transaction.execute("INSERT INTO marks VALUES ('before')")
      _ = try await transaction.query("SELECT 'chain-mark', pg_sleep(600)::text")
    }
  }

  @Test("R1 a deadline travels to SQL: less time at each hop, and the statement is gone")
  func deadline() async throws {
    try await Self.chain(Self.sleepInTransaction) { channel, record, runtime in
      let error = try await refusal { try await go(channel, CallOptions(timeout: .seconds(2))) }
      #expect(error.code == .deadlineExceeded)
      let left = record.value.left
      let (a, b, c) = (try #require(left["A"]), try #require(left["B"]), try #require(left["C"]))
      #expect(a < .seconds(2) && b <= a - .milliseconds(20) && c <= b - .milliseconds(20))
      try await eventually("the statement's end") { try await !Self.isRunning(runtime.database) }
      #expect(try await Self.marks(runtime.database) == 0)
    }
  }

  @Test("R1 50 ms for a single statement that sleeps 5 s end it in PostgreSQL")
  func shortDeadline() async throws {
    let query: @Sendable (CallContext, Database) async throws -> Void = { _, database in
      _ = try await database.query("SELECT 'chain-mark', pg_sleep(5)::text")
    }
    try await TestRuntime.with(name: "chain", migrations: []) { runtime in
      var rig = ProbeRig(group: runtime.group)
      let database = runtime.database
      let ended = Mutex<[String]>([])
      let channel = try rig.serve([
        ProbeService { context in
          do {
            try await query(context, database)
            ended.withLock { $0.append("answered") }
          } catch {
            ended.withLock { $0.append("\(type(of: error))") }
            throw error
          }
        }
      ])
      // Connected before the clock runs.
      _ = try await database.query("SELECT 1")
      let error = try await refusal { try await go(channel, CallOptions(timeout: .milliseconds(50))) }
      #expect(error.code == .deadlineExceeded)
      try await eventually("the handler's end") { ended.withLock { !$0.isEmpty } }
      #expect(ended.withLock { $0 } != ["answered"])
      try await eventually("the statement's end") { try await !Self.isRunning(database) }
      await rig.end()
    }
  }

  @Test("R2 a client's reset is seen by every hop, and nothing is committed after it")
  func cancellation() async throws {
    try await Self.chain(Self.sleepInTransaction) { channel, record, runtime in
      let call = Task { try await go(channel, CallOptions()) }
      try await eventually("C's statement") { try await Self.isRunning(runtime.database) }
      call.cancel()
      let error = try await refusal { try await call.value }
      #expect(error.code == .cancelled)
      try await eventually("every handler's end") { record.value.cancelled == ["A", "B", "C"] }
      try await eventually("the statement's end") { try await !Self.isRunning(runtime.database) }
      #expect(try await Self.marks(runtime.database) == 0)
      #expect(record.value.left.isEmpty)
    }
  }

  @Test("R1 a trace travels through calls into an event, and from it into what its effect publishes and calls")
  func trace() async throws {
    let subject = Identifier()
    let publish: @Sendable (CallContext, Database) async throws -> Void = { context, database in
      try await database.transaction { transaction in
        try await transaction.publish(
          GRPCHealthV1.HealthCheckRequest(service: "first"), subject: subject, traceparent: context.traceparent)
      }
    }
    try await Self.chain(publish) { channel, record, runtime in
      let database = runtime.database
      var options = CallOptions(timeout: .seconds(60))
      options.metadata.append("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
      options.metadata.append("tracestate", "vendor=1")
      try await go(channel, options)
      let traces = record.value.traces
      #expect(Set(traces.values.map { $0.traceIDText }) == ["0af7651916cd43dd8448eb211c80319c"])
      #expect(Set(traces.values.map { $0.spanID }).count == 3)
      #expect(traces["C"]?.state == "vendor=1" && traces["C"]?.flags == 1)
      let stored = try #require(try await Outbox(database: database).read(after: 0, limit: 10).first)
      #expect(stored.traceparent == traces["C"]?.traceparent)

      // The effect knows nothing of traces.
      var subscription = Subscription(publisher: "chain", channel: channel, database: database)
      subscription.on(GRPCHealthV1.HealthCheckRequest.self) { _, transaction in
        try await transaction.publish(GRPCHealthV1.HealthCheckResponse(), subject: subject)
        try await go(channel)
      }
      let position = try await subscription.position()
      let event = EventsV1.Event(
        position: position + 1, id: "\(stored.id)", type: stored.type, subjectID: "\(subject)",
        payload: stored.payload, traceparent: stored.traceparent)
      try await subscription.apply(event, after: position)
      #expect(record.value.traces["A"]?.traceIDText == "0af7651916cd43dd8448eb211c80319c")
      #expect(record.value.traces["A"]?.spanID != traces["A"]?.spanID)
      let later = try await Outbox(database: database).read(after: 1, limit: 10)
      #expect(later.count == 2)
      #expect(later.allSatisfy { $0.traceparent.hasPrefix("00-0af7651916cd43dd8448eb211c80319c-") })
      // Outside the effect there is no trace.
      #expect(TraceContext.current == nil)
    }
  }
}
