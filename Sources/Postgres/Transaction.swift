internal import EventLoop
internal import Primitives

/// A transaction under way; a store is a struct over it. Use it only within the body it was given to.
package struct Transaction: Sendable {
  let session: TransactionSession

  /// Runs one statement and returns its rows. Throws `PostgresError`, after which the transaction can only be rolled
  /// back, or `ServiceError` UNAVAILABLE.
  nonisolated(nonsending) package func query(_ query: Query) async throws -> [Row] {
    try await session.run(query).rows
  }

  /// Runs one statement and returns how many rows it wrote.
  @discardableResult
  nonisolated(nonsending) package func execute(_ query: Query) async throws -> Int {
    try await session.run(query).affectedCount
  }
}

/// How far transactions are kept apart.
package enum TransactionIsolation: Sendable {
  case readCommitted
  case repeatableRead
  case serializable

  fileprivate var begin: Query {
    switch self {
    case .readCommitted: "BEGIN"
    case .repeatableRead: "BEGIN ISOLATION LEVEL REPEATABLE READ"
    case .serializable: "BEGIN ISOLATION LEVEL SERIALIZABLE"
    }
  }
}

/// One connection for the length of one transaction. BEGIN travels with the first statement; a body that runs none
/// costs nothing.
///
/// Safety: confined to its loop, apart from what is marked.
final class TransactionSession: StatementRunner, @unchecked Sendable {
  let loop: EventLoop
  private let connection: Connection
  private let pool: TransactionPool
  private let isolation: TransactionIsolation
  private var hasBegun = false
  private var isEnded = false
  private var failure: PostgresError?

  init(_ connection: Connection, pool: TransactionPool, isolation: TransactionIsolation) {
    loop = pool.loop
    self.connection = connection
    self.pool = pool
    self.isolation = isolation
  }

  func submit(_ statement: Statement) {
    guard !isEnded else {
      return statement.fail(
        ServiceError.internal(cause: ConnectionFault(reason: "a transaction was used after its end")))
    }
    guard !statement.isCancelled else { return statement.fail(CancellationError()) }
    let begin = hasBegun ? [] : [Statement(isolation.begin)]
    hasBegun = true
    connection.send(Segment(begin + [statement]) { [self] in ended($0, $1, statement) })
  }

  private func ended(_ segment: Segment, _ end: Segment.End, _ statement: Statement) {
    switch end {
    case .lost(let error):
      // Without a COMMIT nothing has taken effect.
      statement.fail(ServiceError.databaseUnavailable(error.cause))
    case .synced:
      if let error = segment.error {
        failure = failure ?? error
        let isOwnCancel = statement.isCancelled && error.isCancellation
        statement.fail(isOwnCancel ? CancellationError() : error.asThrown)
      } else if let result = statement.result {
        statement.finish(result)
      }
    }
  }

  func cancel(_ statement: Statement) {
    guard !statement.isFinished else { return }
    loop.schedule(after: cancelDelay) { [connection] in
      if !statement.isFinished { connection.cancelRunning() }
    }
  }

  // MARK: The end

  /// Any thread. Throws when the transaction was not committed, or (reason COMMIT_UNKNOWN) when that is not known.
  nonisolated(nonsending) func commit() async throws {
    try await end { $0.commit($1) }
  }

  /// Any thread. Returns when the server has rolled back or the connection has been closed; true when it was lost.
  nonisolated(nonsending) func rollBack() async -> Bool {
    do {
      try await end { $0.rollBack($1) }
      return false
    } catch {
      return true
    }
  }

  private typealias EndContinuation = UnsafeContinuation<Void, any Error>

  nonisolated(nonsending) private func end(
    _ work: @escaping @Sendable (TransactionSession, EndContinuation) -> Void
  ) async throws {
    try await withUnsafeThrowingContinuation { (continuation: EndContinuation) in
      if loop.isCurrent { work(self, continuation) } else { loop.execute { work(self, continuation) } }
    }
  }

  private func commit(_ continuation: EndContinuation) {
    isEnded = true
    guard hasBegun else {
      pool.giveBack(connection)
      return continuation.resume()
    }
    let statement = Statement("COMMIT")
    connection.send(
      Segment([statement]) { [self] segment, end in
        switch end {
        case .lost(let error): return continuation.resume(throwing: error)
        case .synced: pool.giveBack(connection)
        }
        if let error = segment.error { return continuation.resume(throwing: error.asThrown) }
        // COMMIT of a transaction in which a statement failed answers ROLLBACK.
        guard statement.result?.command == "COMMIT" else {
          return continuation.resume(throwing: failure?.asThrown ?? ServiceError.databaseUnavailable(nil))
        }
        continuation.resume()
      })
  }

  private func rollBack(_ continuation: EndContinuation) {
    isEnded = true
    guard hasBegun, connection.isOpen else {
      pool.giveBack(connection)
      return connection.isOpen ? continuation.resume() : continuation.resume(throwing: CancellationError())
    }
    connection.whenNotCancelling { [self] in
      connection.send(
        Segment([Statement("ROLLBACK")]) { [self] segment, end in
          if case .lost = end { return continuation.resume(throwing: CancellationError()) }
          // A session in doubt is closed, which rolls back too.
          if segment.error != nil { connection.close() }
          pool.giveBack(connection)
          continuation.resume()
        })
    }
  }
}
