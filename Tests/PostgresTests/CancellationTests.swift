import EventLoop
import Postgres
import Primitives
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CancellationTests {
  @Test("R1 a cancelled statement of the shared connection is stopped in PostgreSQL, its neighbours are answered")
  func shared() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      let loop = fixture.group.loops[0]
      let slow = Task(executorPreference: loop) { try await database.query("SELECT pg_sleep(600)") }
      let neighbours = (0..<20).map { number in
        Task(executorPreference: loop) { try await database.query("SELECT \(number)")[0].decode(Int.self) }
      }
      try await until { try await fixture.running(like: "%pg_sleep%") == 1 }
      slow.cancel()
      await #expect(throws: CancellationError.self) { try await slow.value }
      for (number, task) in neighbours.enumerated() { #expect(try await task.value == number) }
      #expect(try await fixture.running(like: "%pg_sleep%") == 0)
    }
  }

  @Test("R1 a cancelled statement of a transaction is stopped in PostgreSQL and the transaction rolled back")
  func transaction() async throws {
    try await PostgresFixture.with(.init(transactionConnectionsPerLoop: 1)) { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint)")
      let task = Task {
        try await database.transaction { transaction in
          try await transaction.execute("INSERT INTO t VALUES (1)")
          _ = try await transaction.query("SELECT pg_sleep(600)")
        }
      }
      try await until { try await fixture.running(like: "%pg_sleep%") == 1 }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try await fixture.running(like: "%pg_sleep%") == 0)
      #expect(try await fixture.count("t") == 0)
      // The only connection is usable again.
      try await database.transaction { try await $0.execute("INSERT INTO t VALUES (2)") }
      #expect(try await fixture.count("t") == 1)
    }
  }

  @Test("Postgres a task cancelled while it waits for a connection leaves the queue")
  func waiting() async throws {
    try await PostgresFixture.with(.init(transactionConnectionsPerLoop: 1, transactionWaitMax: .seconds(600))) {
      fixture in
      let database = fixture.database
      try await database.transaction { transaction in
        _ = try await transaction.query("SELECT 1")
        let task = Task { try await database.transaction { try await $0.query("SELECT 2") } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
      }
      let rows = try await database.transaction { try await $0.query("SELECT 3") }
      #expect(rows.count == 1)
    }
  }

  @Test("Postgres a task that is already cancelled runs no statement")
  func beforehand() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint)")
      let task = Task(executorPreference: fixture.group.loops[0]) {
        withUnsafeCurrentTask { $0?.cancel() }
        try await database.execute("INSERT INTO t VALUES (1)")
      }
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try await fixture.count("t") == 0)
    }
  }

  @Test("Postgres the statement timeout is DEADLINE_EXCEEDED")
  func statementTimeout() async throws {
    try await PostgresFixture.with(.init(statementTimeout: .milliseconds(20))) { fixture in
      let error = await #expect(throws: ServiceError.self) {
        _ = try await fixture.database.query("SELECT pg_sleep(600)")
      }
      #expect(error?.code == .deadlineExceeded)
      #expect(error?.reason == "STATEMENT_TIMEOUT")
    }
  }
}
