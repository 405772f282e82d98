import EventLoop
import Postgres
import Primitives
import Testing

private struct Refused: Error, Equatable {}

@Suite(.timeLimit(.minutes(1)))
struct TransactionTests {
  @Test("Postgres a transaction commits when its body returns and rolls back when it throws")
  func commitAndRollBack() async throws {
    try await PostgresFixture.with { fixture in
      try await fixture.database.execute("CREATE TABLE t (n bigint PRIMARY KEY)")
      let written = try await fixture.database.transaction { transaction in
        try await transaction.execute("INSERT INTO t VALUES (\(1)), (\(2))")
      }
      #expect(written == 2)
      await #expect(throws: Refused()) {
        try await fixture.database.transaction { transaction in
          try await transaction.execute("INSERT INTO t VALUES (\(3))")
          throw Refused()
        }
      }
      #expect(try await fixture.count("t") == 2)
    }
  }

  @Test("Postgres a unique violation is known by its constraint's name")
  func uniqueViolation() async throws {
    try await PostgresFixture.with { fixture in
      try await fixture.database.execute("CREATE TABLE t (email text CONSTRAINT t_email_key UNIQUE)")
      try await fixture.database.execute("INSERT INTO t VALUES (\("a@example.org"))")
      let error = await #expect(throws: PostgresError.self) {
        try await fixture.database.transaction { transaction in
          try await transaction.execute("INSERT INTO t VALUES (\("a@example.org"))")
        }
      }
      #expect(error?.isUniqueViolation("t_email_key") == true)
      #expect(error?.isUniqueViolation("other") == false)
      #expect(error?.table == "t")
      #expect(error.map { "\($0)".contains("a@example.org") } == false)
      #expect(error?.detail?.contains("a@example.org") == true)
    }
  }

  @Test("Postgres a body that swallows a failed statement does not commit")
  func swallowedFailure() async throws {
    try await PostgresFixture.with { fixture in
      try await fixture.database.execute("CREATE TABLE t (n bigint PRIMARY KEY)")
      let error = await #expect(throws: PostgresError.self) {
        try await fixture.database.transaction { transaction in
          try await transaction.execute("INSERT INTO t VALUES (\(1))")
          _ = try? await transaction.execute("INSERT INTO t VALUES (\(1))")
        }
      }
      #expect(error?.isUniqueViolation == true)
      #expect(try await fixture.count("t") == 0)
    }
  }

  @Test("Postgres a deferred constraint fails the commit")
  func deferredConstraint() async throws {
    try await PostgresFixture.with { fixture in
      try await fixture.database.execute(
        "CREATE TABLE t (n bigint CONSTRAINT t_n_key UNIQUE DEFERRABLE INITIALLY DEFERRED)")
      let inTransaction = await #expect(throws: PostgresError.self) {
        try await fixture.database.transaction { transaction in
          try await transaction.execute("INSERT INTO t VALUES (\(1)), (\(1))")
        }
      }
      #expect(inTransaction?.isUniqueViolation("t_n_key") == true)
      let alone = await #expect(throws: PostgresError.self) {
        try await fixture.database.execute("INSERT INTO t VALUES (\(1)), (\(1))")
      }
      #expect(alone?.isUniqueViolation("t_n_key") == true)
      #expect(try await fixture.count("t") == 0)
    }
  }

  @Test("Postgres transactions that find no free connection wait in order, and no longer than the limit")
  func exhaustion() async throws {
    let configuration = DatabaseConfiguration(
      transactionConnectionsPerLoop: 1, transactionsWaitingMax: 1, transactionWaitMax: .milliseconds(50))
    try await PostgresFixture.with(configuration) { fixture in
      let database = fixture.database
      // Connecting counts as waiting.
      try await until { (try? await database.transaction { try await $0.query("SELECT 0") }) != nil }
      // The first holds the only connection until the second has given up.
      let error = await #expect(throws: ServiceError.self) {
        try await database.transaction { transaction in
          _ = try await transaction.query("SELECT 1")
          try await database.transaction { _ = try await $0.query("SELECT 2") }
        }
      }
      #expect(error?.code == .unavailable)
      #expect(error?.reason == "DATABASE_BUSY")
      // It came back.
      let rows = try await database.transaction { try await $0.query("SELECT 3") }
      #expect(rows.count == 1)
    }
  }

  @Test("Postgres one transaction too many in the queue is refused at once")
  func queueLimit() async throws {
    let configuration = DatabaseConfiguration(transactionConnectionsPerLoop: 1, transactionsWaitingMax: 0)
    try await PostgresFixture.with(configuration) { fixture in
      let database = fixture.database
      let error = await #expect(throws: ServiceError.self) {
        try await database.transaction { transaction in
          _ = try await transaction.query("SELECT 1")
          try await database.transaction { _ = try await $0.query("SELECT 2") }
        }
      }
      #expect(error?.code == .resourceExhausted)
    }
  }

  @Test("Postgres many transactions over few connections each take effect once")
  func contention() async throws {
    try await PostgresFixture.with(loops: 2, .init(transactionConnectionsPerLoop: 2)) { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint PRIMARY KEY)")
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for number in 0..<200 {
          tasks.addTask {
            try await database.transaction { transaction in
              try await transaction.execute("INSERT INTO t VALUES (\(number))")
              try await transaction.execute("UPDATE t SET n = -n WHERE n = \(number)")
            }
          }
        }
        try await tasks.waitForAll()
      }
      #expect(try await fixture.count("t") == 200)
    }
  }

  @Test("Postgres a deadlock's loser is run again when retries are asked for, else it is ABORTED")
  func deadlock() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint PRIMARY KEY, hits bigint NOT NULL DEFAULT 0)")
      try await database.execute("INSERT INTO t VALUES (1), (2)")
      @Sendable func hit(_ first: Int, _ second: Int, retries: Int, _ meet: Meeting) async throws {
        try await database.transaction(retries: retries) { transaction in
          _ = try await transaction.query("SET LOCAL deadlock_timeout = '10ms'")
          try await transaction.execute("UPDATE t SET hits = hits + 1 WHERE n = \(first)")
          await meet.arrive()
          try await transaction.execute("UPDATE t SET hits = hits + 1 WHERE n = \(second)")
        }
      }
      let meeting = Meeting()
      async let left: Void = hit(1, 2, retries: 20, meeting)
      async let right: Void = hit(2, 1, retries: 20, meeting)
      _ = try await (left, right)
      #expect(try await database.query("SELECT sum(hits)::bigint FROM t")[0].decode(Int.self) == 4)

      let second = Meeting()
      async let one = Result(awaiting: { try await hit(1, 2, retries: 0, second) })
      async let two = Result(awaiting: { try await hit(2, 1, retries: 0, second) })
      let errors = await [one, two].compactMap { (result: Result<Void, any Error>) -> ServiceError? in
        guard case .failure(let error) = result else { return nil }
        return error as? ServiceError
      }
      #expect(errors.map(\.code) == [.aborted])
    }
  }

  @Test("Postgres a session lost inside a transaction is UNAVAILABLE and nothing of it remains")
  func lostSession() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint PRIMARY KEY)")
      let url = fixture.url
      let error = await #expect(throws: ServiceError.self) {
        try await database.transaction { transaction in
          try await transaction.execute("INSERT INTO t VALUES (\(1))")
          let process = try await transaction.query("SELECT pg_backend_pid()")[0].decode(Int.self)
          let other = EventLoopGroup(count: 1)
          let outside = Database(url: url, group: other)
          _ = try await outside.query("SELECT pg_terminate_backend(\(process)::int)")
          await outside.close()
          await other.shutdown()
          _ = try await transaction.query("SELECT 1")
        }
      }
      #expect(error?.code == .unavailable)
      #expect(try await fixture.count("t") == 0)
      try await database.transaction { try await $0.execute("INSERT INTO t VALUES (\(2))") }
      #expect(try await fixture.count("t") == 1)
    }
  }

  @Test("Postgres a session lost during COMMIT says that the outcome is not known")
  func lostCommit() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint)")
      try await database.execute(
        """
        CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END'
        """)
      try await database.execute(
        """
        CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION dawdle()
        """)
      async let outcome = #expect(throws: ServiceError.self) {
        try await database.transaction { try await $0.execute("INSERT INTO t VALUES (1)") }
      }
      try await until { try await fixture.running(like: "COMMIT") == 1 }
      #expect(try await fixture.endSessions(lastQueryLike: "COMMIT") == 1)
      let error = await outcome
      #expect(error?.code == .unavailable)
      #expect(error?.reason == "COMMIT_UNKNOWN")
    }
  }

  @Test("Postgres closing the database ends a transaction under way with UNAVAILABLE")
  func closed() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      let error = await #expect(throws: ServiceError.self) {
        try await database.transaction { transaction in
          _ = try await transaction.query("SELECT 1")
          await database.close()
          _ = try await transaction.query("SELECT 2")
        }
      }
      #expect(error?.code == .unavailable)
    }
  }

  @Test("Postgres a repeatable-read transaction sees one state of the data")
  func isolation() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint PRIMARY KEY)")
      let counts = try await database.transaction(isolation: .repeatableRead) { transaction in
        let before = try await transaction.query("SELECT count(*) FROM t")[0].decode(Int.self)
        try await database.execute("INSERT INTO t VALUES (\(1))")
        let after = try await transaction.query("SELECT count(*) FROM t")[0].decode(Int.self)
        return [before, after]
      }
      #expect(counts == [0, 0])
    }
  }

  @Test("Postgres an actor can run a transaction that touches its own state")
  func actorCaller() async throws {
    actor Counter {
      var count = 0
      func run(_ database: Database) async throws -> Int {
        try await database.transaction { transaction in
          count += try await transaction.query("SELECT 1").count
        }
        return count
      }
    }
    try await PostgresFixture.with { fixture async throws in
      #expect(try await Counter().run(fixture.database) == 1)
    }
  }
}

/// Two tasks wait for each other once; later arrivals pass.
private actor Meeting {
  private var arrived = 0
  private var waiting: CheckedContinuation<Void, Never>?

  func arrive() async {
    arrived += 1
    guard arrived < 2 else {
      waiting?.resume()
      waiting = nil
      return
    }
    await withCheckedContinuation { waiting = $0 }
  }
}

extension Result where Failure == any Error {
  fileprivate init(awaiting body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
