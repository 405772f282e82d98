import EventLoop
import Postgres
import Primitives
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct SharedConnectionTests {
  /// Starts all of `queries` in one turn of the loop and returns each one's end.
  private func atOnce(_ queries: [Query], _ fixture: PostgresFixture) async -> [Result<Int, any Error>] {
    let database = fixture.database
    return await withTaskGroup(of: (Int, Result<Int, any Error>).self) { tasks in
      for (index, query) in queries.enumerated() {
        tasks.addTask(executorPreference: fixture.group.loops[0]) {
          do { return (index, .success(try await database.query(query).count)) } catch {
            return (index, .failure(error))
          }
        }
      }
      var results = [Result<Int, any Error>](repeating: .success(-1), count: queries.count)
      for await (index, result) in tasks { results[index] = result }
      return results
    }
  }

  private func failures(_ results: [Result<Int, any Error>]) -> [Int: String] {
    var found: [Int: String] = [:]
    for (index, result) in results.enumerated() {
      if case .failure(let error) = result { found[index] = (error as? PostgresError)?.sqlState ?? "\(error)" }
    }
    return found
  }

  @Test("Postgres of fifty writes in one turn the failing one fails alone and the others take effect once")
  func writes() async throws {
    try await PostgresFixture.with { fixture in
      try await fixture.database.execute("CREATE TABLE t (n bigint PRIMARY KEY)")
      try await fixture.database.execute("INSERT INTO t VALUES (25)")
      let results = await atOnce((0..<50).map { "INSERT INTO t VALUES (\($0)) RETURNING n" }, fixture)
      #expect(failures(results) == [25: "23505"])
      #expect(try await fixture.count("t") == 50)
    }
  }

  @Test("Postgres of fifty reads in one turn the failing one fails alone")
  func reads() async throws {
    try await PostgresFixture.with { fixture in
      let results = await atOnce((0..<50).map { "SELECT 1 / (\($0) - 25)" }, fixture)
      #expect(failures(results) == [25: "22012"])
    }
  }

  @Test("Postgres a SELECT that writes takes effect once though its neighbour failed")
  func writingReads() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n bigint PRIMARY KEY)")
      try await database.execute(
        """
        CREATE FUNCTION put(value bigint) RETURNS bigint LANGUAGE sql AS 'INSERT INTO t VALUES (value) RETURNING n'
        """)
      let queries: [Query] = (0..<50).map { $0 == 25 ? "SELECT nothing" : "SELECT put(\($0))" }
      #expect(failures(await atOnce(queries, fixture)) == [25: "42703"])
      #expect(try await fixture.count("t") == 49)
      // A failure to prepare is not remembered: the same text works once its column exists.
      #expect(failures(await atOnce(["SELECT nothing"], fixture)) == [0: "42703"])
      try await database.execute("ALTER TABLE t ADD COLUMN nothing text")
      #expect(failures(await atOnce(["SELECT nothing FROM t"], fixture)).isEmpty)
    }
  }

  @Test("Postgres a thousand statements keep their answers apart")
  func answers() async throws {
    try await PostgresFixture.with(loops: 2) { fixture in
      let database = fixture.database
      let sum = try await withThrowingTaskGroup(of: Int.self) { tasks in
        for number in 0..<1000 {
          tasks.addTask {
            let value = try await database.query("SELECT \(number)")[0].decode(Int.self)
            return value == number ? 1 : 0
          }
        }
        return try await tasks.reduce(0, +)
      }
      #expect(sum == 1000)
    }
  }

  @Test("Postgres a statement fits the tables again after a migration")
  func stalePlan() async throws {
    try await PostgresFixture.with(.init(transactionConnectionsPerLoop: 1)) { fixture in
      let database = fixture.database
      try await database.execute("CREATE TABLE t (n) AS SELECT 1")
      try await database.execute("CREATE TABLE u (n) AS SELECT 1")
      let inTransaction: @Sendable () async throws -> Int = {
        try await database.transaction { transaction in
          let first = try await transaction.query("SELECT * FROM t")[0].columnCount
          return try await transaction.query("SELECT * FROM u")[0].columnCount + first
        }
      }
      #expect(try await database.query("SELECT * FROM t")[0].columnCount == 1)
      #expect(try await inTransaction() == 2)
      try await database.execute("ALTER TABLE t ADD COLUMN m bigint")
      try await database.execute("ALTER TABLE u ADD COLUMN m bigint")
      #expect(try await database.query("SELECT * FROM t")[0].columnCount == 2)
      // A transaction that has begun cannot be repaired; the next one has a new session.
      await #expect(throws: PostgresError.self) { try await inTransaction() }
      #expect(try await inTransaction() == 4)
    }
  }

  @Test("Postgres a text that could not be prepared is not taken for prepared")
  func failedPrepare() async throws {
    try await PostgresFixture.with(.init(transactionConnectionsPerLoop: 1)) { fixture in
      let database = fixture.database
      for _ in 0..<2 {
        let error = await #expect(throws: PostgresError.self) {
          try await database.transaction { try await $0.query("SELECT nothing") }
        }
        #expect(error?.sqlState == "42703")
      }
    }
  }

  @Test("Postgres a statement that must not run within a transaction block runs among others")
  func notInBlock() async throws {
    try await PostgresFixture.with { fixture in
      try await fixture.database.execute("CREATE TABLE t (n bigint)")
      let results = await atOnce(["SELECT 1", "VACUUM t", "SELECT 2", "CREATE INDEX CONCURRENTLY ON t (n)"], fixture)
      #expect(failures(results).isEmpty)
    }
  }

  @Test("Postgres after its session was ended the shared connection is made again")
  func reconnect() async throws {
    try await PostgresFixture.with { fixture in
      _ = try await fixture.database.query("SELECT 1")
      #expect(try await fixture.endSessions() == 1)
      // The loss may be noticed by the next call or before it.
      _ = try? await fixture.database.query("SELECT 2")
      #expect(try await fixture.database.query("SELECT 3").count == 1)
    }
  }

  @Test("Postgres a statement in flight when its session ends is UNAVAILABLE")
  func lostInFlight() async throws {
    try await PostgresFixture.with { fixture in
      let database = fixture.database
      async let ending = #expect(throws: ServiceError.self) { _ = try await database.query("SELECT pg_sleep(600)") }
      try await until { try await fixture.running(like: "%pg_sleep%") == 1 }
      #expect(try await fixture.endSessions() == 1)
      #expect(await ending?.code == .unavailable)
      #expect(try await database.query("SELECT 1").count == 1)
    }
  }

  @Test("Postgres a server that is not there is UNAVAILABLE, at once while it is known to be down")
  func serverDown() async throws {
    let group = EventLoopGroup(count: 1)
    for url in ["postgresql://nobody@127.0.0.1:1/none", "postgresql://nobody@localhost:1/none", "not a url"] {
      let database = Database(url: Secret(url), group: group)
      for _ in 0..<100 {
        let error = await #expect(throws: ServiceError.self) { _ = try await database.query("SELECT 1") }
        #expect(error?.code == .unavailable)
      }
      let error = await #expect(throws: ServiceError.self) {
        try await database.transaction { try await $0.query("SELECT 1") }
      }
      #expect(error?.code == .unavailable)
      await database.close()
    }
    await group.shutdown()
  }

  @Test("Postgres a server known to be down is not asked again by every call")
  func backOff() async throws {
    let group = EventLoopGroup(count: 1)
    let address = try #require(SocketAddress("127.0.0.1:0"))
    let accepted = Atomic<Int>(0)
    let listener = try Listener.listen(on: address, group: group, tls: nil) { stream in
      accepted.wrappingAdd(1, ordering: .relaxed)
      stream.abort()
    }
    let database = Database(url: Secret("postgresql://nobody@127.0.0.1:\(listener.port)/none"), group: group)
    for _ in 0..<200 {
      let error = await #expect(throws: ServiceError.self) { _ = try await database.query("SELECT 1") }
      #expect(error?.code == .unavailable)
    }
    #expect((1..<100).contains(accepted.load(ordering: .relaxed)))
    await database.close()
    await listener.close()
    await group.shutdown()
  }

  @Test("Postgres a server that accepts and says nothing is UNAVAILABLE after the connect timeout")
  func silentServer() async throws {
    let group = EventLoopGroup(count: 1)
    let address = try #require(SocketAddress("127.0.0.1:0"))
    let listener = try Listener.listen(on: address, group: group, tls: nil) { _ in }
    let database = Database(
      url: Secret("postgresql://nobody@127.0.0.1:\(listener.port)/none"), group: group,
      configuration: .init(connectTimeout: .milliseconds(50)))
    let error = await #expect(throws: ServiceError.self) { _ = try await database.query("SELECT 1") }
    #expect(error?.code == .unavailable)
    await database.close()
    await listener.close()
    await group.shutdown()
  }

  @Test("Postgres a URL that libpq cannot read is known before connecting")
  func url() {
    #expect(Database.isValid(url: Secret("postgresql://a:b@127.0.0.1/c")))
    #expect(!Database.isValid(url: Secret("https://a:b@127.0.0.1/c")))
  }

  @Test("Postgres a closed database refuses with UNAVAILABLE")
  func closed() async throws {
    try await PostgresFixture.with { fixture in
      _ = try await fixture.database.query("SELECT 1")
      await fixture.database.close()
      let error = await #expect(throws: ServiceError.self) { _ = try await fixture.database.query("SELECT 1") }
      #expect(error?.code == .unavailable)
    }
  }

  @Test("Postgres one statement too many in the queue is RESOURCE_EXHAUSTED")
  func queueLimit() async throws {
    try await PostgresFixture.with(.init(statementsWaitingMax: 10)) { fixture in
      let results = await atOnce((0..<2000).map { _ in "SELECT 1" }, fixture)
      let refused = results.filter {
        if case .failure(let error) = $0 { (error as? ServiceError)?.code == .resourceExhausted } else { false }
      }
      #expect(!refused.isEmpty && refused.count < 2000)
    }
  }

  @Test("Postgres a session has the settings the services rely on")
  func settings() async throws {
    let configuration = DatabaseConfiguration(
      statementTimeout: .seconds(7), applicationName: "vault", schema: "the vault")
    try await PostgresFixture.with(configuration) { fixture in
      let row = try await fixture.database.query(
        """
        SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'),
          current_setting('TimeZone'), current_setting('client_encoding'), current_setting('application_name'),
          current_setting('search_path')
        """)[0]
      let (timeout, idle, zone, encoding, name, path) = try row.decode(
        (String, String, String, String, String, String).self)
      #expect([timeout, idle, zone, encoding, name, path] == ["7s", "1min", "UTC", "UTF8", "vault", "\"the vault\""])
    }
  }
}
