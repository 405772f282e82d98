internal import EventLoop
internal import Primitives

/// A loop's connections for transactions, each lent to one at a time. Who finds none waits in order.
///
/// Safety: confined to its loop.
final class TransactionPool: @unchecked Sendable {
  let loop: EventLoop
  private let connector: Connector
  private let configuration: DatabaseConfiguration
  private var idle: [Connection] = []
  /// Idle and lent.
  private var open: [Connection] = []
  private var opening = 0
  private var waiters = Queue<Waiter>()

  init(loop: EventLoop, connector: Connector, configuration: DatabaseConfiguration) {
    self.loop = loop
    self.connector = connector
    self.configuration = configuration
  }

  /// Somebody who waits for a connection.
  ///
  /// Safety: confined to the pool's loop once it waits.
  fileprivate final class Waiter: @unchecked Sendable {
    var continuation: UnsafeContinuation<Connection, any Error>?
    var timer: LoopTimer?
    var isCancelled = false

    func finish(_ result: Result<Connection, any Error>) {
      timer?.cancel()
      continuation?.resume(with: result)
      continuation = nil
    }
  }

  /// A connection for the caller alone; it must come back through `giveBack`.
  nonisolated(nonsending) func take() async throws -> Connection {
    let waiter = Waiter()
    return try await withTaskCancellationHandler {
      try await withUnsafeThrowingContinuation { continuation in
        waiter.continuation = continuation
        if loop.isCurrent { serve(waiter) } else { loop.execute { self.serve(waiter) } }
      }
    } onCancel: {
      loop.execute {
        waiter.isCancelled = true
        waiter.finish(.failure(CancellationError()))
      }
    }
  }

  private func serve(_ waiter: Waiter) {
    guard !waiter.isCancelled else { return waiter.finish(.failure(CancellationError())) }
    if let connection = idle.popLast() { return waiter.finish(.success(connection)) }
    waiters.removeAll(where: { $0.continuation == nil })
    guard waiters.count < configuration.transactionsWaitingMax else {
      return waiter.finish(.failure(ServiceError.databaseBusy))
    }
    waiters.append(waiter)
    waiter.timer = loop.schedule(after: configuration.transactionWaitMax) { [weak waiter] in
      waiter?.finish(
        .failure(
          ServiceError(
            .unavailable, "The service is busy; try again in a moment.", reason: "DATABASE_BUSY",
            retryAfter: .seconds(1))))
    }
    openIfNeeded()
  }

  private func openIfNeeded() {
    guard !waiters.isEmpty, open.count + opening < configuration.transactionConnectionsPerLoop else { return }
    opening += 1
    connector.connect { [self] result in
      opening -= 1
      switch result {
      case .success(let connection):
        open.append(connection)
        connection.onClose = { [weak self] in self?.closed($0) }
        deliver(connection)
      case .failure(let error):
        // While others are open, those who wait get one of them.
        guard open.isEmpty, opening == 0 else { return }
        for waiter in waiters.removeAll() { waiter.finish(.failure(error)) }
      }
    }
  }

  private func deliver(_ connection: Connection) {
    while let waiter = waiters.popFirst() {
      guard waiter.continuation != nil else { continue }
      return waiter.finish(.success(connection))
    }
    idle.append(connection)
  }

  private func closed(_ connection: Connection) {
    idle.removeAll { $0 === connection }
    open.removeAll { $0 === connection }
    openIfNeeded()
  }

  /// Takes back a connection that is outside of any transaction; one that was lost has already been counted out.
  func giveBack(_ connection: Connection) {
    guard connection.isOpen else { return }
    guard !connection.isStale else {
      // The tables have changed under its prepared statements, and so they have under those of the idle ones.
      for other in idle { other.close() }
      return connection.close()
    }
    deliver(connection)
  }

  func close() {
    for waiter in waiters.removeAll() { waiter.finish(.failure(ServiceError.databaseUnavailable(nil))) }
    for connection in open { connection.close() }
  }
}
