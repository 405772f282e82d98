private import CPostgres
internal import EventLoop
package import Primitives

/// Brings a service's schema up to date. Run it as the schema's owner; several may run at once, one of them works and
/// the others wait. Applied migrations are remembered in `schema_migrations` in the schema itself.
package struct Migrator: Sendable {
  private let parameters: ConnectionParameters?
  private let schema: String
  private let blocking: BlockingPool

  /// `schema` is created when it does not exist.
  package init(url: Secret<String>, schema: String) {
    self.schema = schema
    var configuration = DatabaseConfiguration()
    configuration.applicationName = "migrate"
    configuration.schema = schema
    // Building an index takes as long as it takes.
    configuration.statementTimeout = .zero
    parameters = ConnectionParameters(url: url, configuration: configuration)
    blocking = BlockingPool(name: "migrate", threads: 1, queueMax: 16)
  }

  /// Applies what is missing, in order, each in a transaction of its own, and returns the names. Throws
  /// `MigrationError`, `PostgresError`, or `ServiceError` UNAVAILABLE; what was applied before a failure stays.
  package func migrate(_ all: [Migration]) async throws -> [String] {
    try await blocking.run {
      let session = try open()
      try session.run("SELECT pg_advisory_lock(hashtextextended($1, 1))", ["migrate " + schema])
      // A change that cannot get its lock soon fails, instead of holding up everyone who queues behind it.
      try session.run("SET lock_timeout = '10s'")
      try session.run("SET client_min_messages = 'warning'")
      if try session.rows("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]).isEmpty {
        try session.run("CREATE SCHEMA \(session.quoted(schema))")
      }
      try session.run(
        """
        CREATE TABLE IF NOT EXISTS schema_migrations (
          name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())
        """)
      let checksums = try checksums(of: all, session)
      let plan = try MigrationPlan(all, checksums: checksums, applied: applied(session))
      for migration in plan.pending { try apply(migration, checksums[migration.name] ?? "", session) }
      return plan.pending.map(\.name)
    }
  }

  /// The names not yet applied; throws as `migrate` when the database and the list contradict each other. Changes
  /// nothing. A database that is ahead of the list is fine.
  package func check(_ all: [Migration]) async throws -> [String] {
    try await blocking.run {
      let session = try open()
      let isNew = try session.rows("SELECT to_regclass($1)::text", [session.quoted(schema) + ".schema_migrations"])
      guard isNew.first?.first ?? nil != nil else {
        return try MigrationPlan(all, checksums: [:], applied: [:]).pending.map(\.name)
      }
      let checksums = try checksums(of: all, session)
      return try MigrationPlan(all, checksums: checksums, applied: applied(session)).pending.map(\.name)
    }
  }

  private func apply(_ migration: Migration, _ checksum: String, _ session: BlockingSession) throws {
    do {
      try session.run("BEGIN")
      try session.run(script: migration.sql)
      try session.run(
        "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)", [migration.name, checksum])
      guard try session.run("COMMIT") == "COMMIT" else {
        throw PostgresError(sqlState: "25P02", message: "the transaction was aborted")
      }
    } catch let error as PostgresError {
      _ = try? session.run("ROLLBACK")
      throw MigrationError.failed(name: migration.name, error)
    }
  }

  private func applied(_ session: BlockingSession) throws -> [String: String] {
    let rows = try session.rows("SELECT name, checksum FROM \(session.quoted(schema)).schema_migrations")
    return Dictionary(uniqueKeysWithValues: rows.map { ($0[0] ?? "", $0[1] ?? "") })
  }

  /// SHA-256 of each file, by the server.
  private func checksums(of all: [Migration], _ session: BlockingSession) throws -> [String: String] {
    var result: [String: String] = [:]
    for migration in all {
      let rows = try session.rows(
        "SELECT encode(sha256(decode($1, 'hex')), 'hex')", [Hex.encode(migration.sql)])
      result[migration.name] = rows[0][0] ?? ""
    }
    return result
  }

  private func open() throws -> BlockingSession {
    guard let parameters else {
      throw ServiceError.databaseUnavailable(ConnectionFault(reason: "the database URL is not valid"))
    }
    return try BlockingSession(parameters)
  }
}

/// A plain connection whose calls block; text values only.
private final class BlockingSession {
  private let handle: OpaquePointer

  init(_ parameters: ConnectionParameters) throws {
    guard let handle = parameters.connect() else {
      throw ServiceError.databaseUnavailable(ConnectionFault(reason: "out of memory"))
    }
    self.handle = handle
    PQsetNoticeReceiver(handle, { _, _ in }, nil)
    guard PQstatus(handle) == CONNECTION_OK else {
      throw ServiceError.databaseUnavailable(ConnectionFault(reason: String(cString: PQerrorMessage(handle))))
    }
  }

  deinit { PQfinish(handle) }

  /// Returns what the server says it did.
  @discardableResult
  func run(_ sql: String, _ values: [String] = []) throws -> String {
    let result = try send(sql, values)
    defer { PQclear(result) }
    return String(cString: PQcmdStatus(result))
  }

  func rows(_ sql: String, _ values: [String] = []) throws -> [[String?]] {
    let result = try send(sql, values)
    defer { PQclear(result) }
    return (0..<PQntuples(result)).map { row in
      (0..<PQnfields(result)).map { column in
        PQgetisnull(result, row, column) == 1 ? nil : String(cString: PQgetvalue(result, row, column))
      }
    }
  }

  /// Several statements at once.
  func run(script: [UInt8]) throws {
    guard !script.contains(0) else { throw PostgresError(sqlState: "22021", message: "the script holds U+0000") }
    let result = (script + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { PQexec(handle, $0.baseAddress) }
    }
    PQclear(try checked(result))
  }

  /// `name` as an SQL identifier.
  func quoted(_ name: String) -> String {
    "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }

  private func send(_ sql: String, _ values: [String]) throws -> OpaquePointer? {
    guard !values.isEmpty else { return try checked(PQexec(handle, sql)) }
    let texts = CStrings(values)
    let result = withExtendedLifetime(texts) {
      PQexecParams(handle, sql, Int32(values.count), nil, texts.pointers, nil, nil, 0)
    }
    return try checked(result)
  }

  private func checked(_ result: OpaquePointer?) throws -> OpaquePointer? {
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: return result
    default:
      defer { PQclear(result) }
      throw PostgresError(result: result)
    }
  }
}
