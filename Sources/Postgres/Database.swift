package import EventLoop
package import Primitives

/// A PostgreSQL database as one service sees it. Every loop of the group has its own connections; a call uses those of
/// the loop it runs on. Connections are made when first needed and made again, with a growing pause, when lost: while
/// the database is down, calls fail with UNAVAILABLE within the connect timeout, mostly at once.
///
/// A refused statement throws `PostgresError`; the statement timeout DEADLINE_EXCEEDED; a cancelled task gets
/// `CancellationError`, after the server has stopped the statement. Close the database before its loops.
package final class Database: Sendable {
  private let group: EventLoopGroup
  private let parts: [LoopDatabase]
  private let notifications: Notifications

  /// Connects to nothing yet. With a URL that `isValid` refuses, every call fails with UNAVAILABLE.
  package init(url: Secret<String>, group: EventLoopGroup, configuration: DatabaseConfiguration = .init()) {
    self.group = group
    let blocking = BlockingPool(name: "postgres", threads: 2, queueMax: 1000)
    let parameters = ConnectionParameters(url: url, configuration: configuration)
    func connector(_ loop: EventLoop) -> Connector {
      Connector(loop: loop, blocking: blocking, parameters: parameters, timeout: configuration.connectTimeout)
    }
    parts = group.loops.map { LoopDatabase($0, connector($0), configuration) }
    notifications = Notifications(loop: group.loops[0], connector: connector(group.loops[0]))
  }

  /// Whether libpq can read `url`.
  package static func isValid(url: Secret<String>) -> Bool {
    ConnectionParameters(url: url, configuration: .init()) != nil
  }

  private func part(of loop: EventLoop) -> LoopDatabase {
    for part in parts where part.loop === loop { return part }
    return parts[0]
  }

  private var local: LoopDatabase {
    if let current = EventLoop.current {
      for part in parts where part.loop === current { return part }
    }
    return part(of: group.next())
  }

  /// Runs one statement, in a transaction of its own, and returns its rows. It shares the loop's connection with
  /// others, so it must be quick, and it must not change the session (SET, LISTEN, advisory session locks).
  nonisolated(nonsending) package func query(_ query: Query) async throws -> [Row] {
    try await local.shared.run(query).rows
  }

  /// As `query`; returns how many rows were written.
  @discardableResult
  nonisolated(nonsending) package func execute(_ query: Query) async throws -> Int {
    try await local.shared.run(query).affectedCount
  }

  /// Runs `body` in a transaction on a connection of its own: committed when it returns, rolled back when it throws.
  ///
  /// - `retries`: how often the whole body is run again after a serialization failure or a deadlock; what remains
  ///   becomes ABORTED, reason CONFLICT.
  /// - A lost connection is UNAVAILABLE; reason COMMIT_UNKNOWN when the COMMIT had been sent and may have taken effect.
  /// - No connection free within the time limit: UNAVAILABLE, reason DATABASE_BUSY.
  ///
  /// Do not wait for anything slow inside: the transaction holds locks and one of few connections.
  @discardableResult
  nonisolated(nonsending) package func transaction<Value: Sendable>(
    isolation: TransactionIsolation = .readCommitted, retries: Int = 0,
    _ body: nonisolated(nonsending) (Transaction) async throws -> Value
  ) async throws -> Value {
    var retriesLeft = retries
    while true {
      do {
        return try await attempt(isolation, body)
      } catch let error as PostgresError where error.isRetryable {
        guard retriesLeft > 0, !Task.isCancelled else {
          throw ServiceError(
            .aborted, "Another change came in between; try again.", reason: "CONFLICT", cause: error)
        }
        retriesLeft -= 1
      }
    }
  }

  nonisolated(nonsending) private func attempt<Value: Sendable>(
    _ isolation: TransactionIsolation, _ body: nonisolated(nonsending) (Transaction) async throws -> Value
  ) async throws -> Value {
    let pool = local.transactions
    let session = TransactionSession(try await pool.take(), pool: pool, isolation: isolation)
    let value: Value
    do {
      value = try await body(Transaction(session: session))
    } catch {
      let isLost = await session.rollBack()
      if isLost, !(error is CancellationError) { throw ServiceError.databaseUnavailable(error) }
      throw error
    }
    try await session.commit()
    return value
  }

  /// Calls `body` on a loop with the payload of every NOTIFY on `channel`, until the registration is cancelled.
  /// Notifications can be lost with the connection: `body("")` is called each time listening has begun (again), and
  /// means "look for yourself". `body` must not block.
  package func listen(_ channel: String, _ body: @escaping @Sendable (_ payload: String) -> Void)
    -> ListenRegistration
  {
    notifications.register(channel, body)
  }

  /// Closes every connection; calls under way and later ones fail with UNAVAILABLE.
  package func close() async {
    await notifications.close()
    for part in parts { await part.close() }
  }
}

/// What one loop has of a database.
///
/// Safety: immutable; its parts are confined to the loop.
private final class LoopDatabase: Sendable {
  let loop: EventLoop
  let shared: SharedConnection
  let transactions: TransactionPool
  private let connector: Connector

  init(_ loop: EventLoop, _ connector: Connector, _ configuration: DatabaseConfiguration) {
    self.loop = loop
    self.connector = connector
    shared = SharedConnection(loop: loop, connector: connector, waitingMax: configuration.statementsWaitingMax)
    transactions = TransactionPool(loop: loop, connector: connector, configuration: configuration)
  }

  func close() async {
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      loop.execute {
        self.connector.close()
        self.shared.close()
        self.transactions.close()
        continuation.resume()
      }
    }
  }
}
