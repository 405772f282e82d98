internal import EventLoop
internal import Primitives

/// A loop's one connection for single statements, in pipeline mode.
///
/// Statements that arrive in one turn of the loop are sent together at its end. Statements up to the same sync are one
/// transaction to PostgreSQL, so who may share a sync decides who fails with whom:
///
/// - A statement that may write has a sync, and with it a transaction, of its own. It is never run twice and holds no
///   locks on another caller's account.
/// - Neighbouring reads share a sync, which is where the speed comes from. No answer is given before the sync has
///   arrived. When one of them fails, the server has rolled all of them back, and each is run again with a sync of its
///   own; the answer of that run counts. What counts as a read is a guess by the text; a wrong guess costs time but
///   stays correct, for the same reason.
///
/// Safety: confined to its loop.
final class SharedConnection: StatementRunner, TurnEndHandler, @unchecked Sendable {
  /// Reads that share one sync. A larger number delays the first answer, a smaller one costs syncs.
  private static let segmentMax = 64
  /// Statements sent and unanswered; more wait here, where cancelling them is free.
  private static let inFlightMax = 512

  let loop: EventLoop
  private let connector: Connector
  private let waitingMax: Int
  private var connection: Connection?
  private var isConnecting = false
  private var isTurnEndAsked = false
  private var waiting = Queue<Statement>()
  /// Go first, each alone.
  private var repeats = Queue<Statement>()
  private var segments = Queue<Segment>()
  private var inFlight = 0

  init(loop: EventLoop, connector: Connector, waitingMax: Int) {
    self.loop = loop
    self.connector = connector
    self.waitingMax = waitingMax
  }

  func submit(_ statement: Statement) {
    guard !statement.isCancelled else { return statement.fail(CancellationError()) }
    guard waiting.count < waitingMax else { return statement.fail(ServiceError.databaseBusy) }
    waiting.append(statement)
    askTurnEnd()
  }

  private func askTurnEnd() {
    guard !isTurnEndAsked else { return }
    isTurnEndAsked = true
    loop.afterTurn(notify: self)
  }

  func turnEnds() {
    isTurnEndAsked = false
    guard let connection else { return connect() }
    while connection.isOpen, inFlight < SharedConnection.inFlightMax, let statements = nextStatements() {
      let segment = Segment(statements) { [self] in ended($0, $1) }
      inFlight += statements.count
      segments.append(segment)
      connection.send(segment)
    }
  }

  private func nextStatements() -> [Statement]? {
    while let statement = repeats.popFirst() {
      if !statement.isFinished { return [statement] }
    }
    var statements: [Statement] = []
    while let statement = waiting.first, statements.count < SharedConnection.segmentMax {
      guard !statement.isFinished else {
        _ = waiting.popFirst()
        continue
      }
      let isRead = statement.query.isRead
      guard statements.isEmpty || isRead else { break }
      _ = waiting.popFirst()
      statement.isSent = true
      statements.append(statement)
      guard isRead else { break }
    }
    return statements.isEmpty ? nil : statements
  }

  // MARK: Answers

  private func ended(_ segment: Segment, _ end: Segment.End) {
    _ = segments.popFirst()
    inFlight -= segment.statements.count
    switch end {
    case .lost(let error):
      for statement in segment.statements { statement.fail(error) }
    case .synced where segment.error == nil:
      for statement in segment.statements { answer(statement) }
    case .synced where segment.statements.count > 1:
      for statement in segment.statements { repeatAlone(statement) }
    case .synced:
      settle(segment.statements[0], segment.error)
    }
    if !repeats.isEmpty || !waiting.isEmpty { askTurnEnd() }
    if let head = segments.first, head.statements.contains(where: \.isCancelled) { stopHead() }
  }

  private func answer(_ statement: Statement) {
    guard let result = statement.result else {
      return statement.fail(ServiceError.internal(cause: ConnectionFault(reason: "a statement had no answer")))
    }
    statement.finish(result)
  }

  private func repeatAlone(_ statement: Statement) {
    guard !statement.isCancelled else { return statement.fail(CancellationError()) }
    repeats.append(statement)
  }

  /// A statement failed in a transaction of its own: nothing of it remains.
  private func settle(_ statement: Statement, _ error: PostgresError?) {
    guard let error else { return answer(statement) }
    if statement.isCancelled, error.isCancellation { return statement.fail(CancellationError()) }
    let wasHitByCancel =
      error.isCancellation && connection.map { $0.cancelRequests > statement.cancelRequestsBefore } ?? false
    guard !statement.wasRepeated, error.isStalePlan || error.isRetryable || wasHitByCancel else {
      return statement.fail(error.asThrown)
    }
    statement.wasRepeated = true
    repeatAlone(statement)
  }

  // MARK: Cancelling

  func cancel(_ statement: Statement) {
    guard !statement.isFinished else { return }
    // Not sent: forget it. Its place in the queue is skipped.
    guard statement.isSent else { return statement.fail(CancellationError()) }
    if let head = segments.first, head.statements.contains(where: { $0 === statement }) { stopHead() }
  }

  /// Has the server stop the segment it works on, if a cancelled statement still waits for it a moment later. The
  /// others in the segment are run again.
  private func stopHead() {
    guard let head = segments.first else { return }
    loop.schedule(after: cancelDelay) { [weak self] in
      guard let self, segments.first === head, let connection else { return }
      connection.cancelRunning()
      connection.whenNotCancelling { [weak self] in
        guard let self, let next = segments.first, next !== head,
          next.statements.contains(where: \.isCancelled)
        else { return }
        stopHead()
      }
    }
  }

  // MARK: The connection

  private func connect() {
    guard !isConnecting else { return }
    isConnecting = true
    connector.connect { [self] result in
      isConnecting = false
      switch result {
      case .success(let new):
        connection = new
        new.onClose = { [weak self] closed in
          guard let self, connection === closed else { return }
          connection = nil
          if !waiting.isEmpty || !repeats.isEmpty { askTurnEnd() }
        }
        turnEnds()
      case .failure(let error):
        failWaiting(error)
      }
    }
  }

  private func failWaiting(_ error: ServiceError) {
    for statement in repeats.removeAll() + waiting.removeAll() { statement.fail(error) }
  }

  func close() {
    failWaiting(.databaseUnavailable(nil))
    connection?.close()
  }
}

extension Query {
  /// Whether the text looks like a SELECT without row locks.
  var isRead: Bool {
    var text = self.text
    return text.withUTF8 { bytes in
      var start = 0
      while start < bytes.count, bytes[start] <= 0x20 { start += 1 }
      guard Query.matches(bytes, start, "select") else { return false }
      var position = start + 6
      while position + 5 <= bytes.count {
        if bytes[position] | 0x20 == UInt8(ascii: "f"), Query.matches(bytes, position, "for "),
          "uskn".utf8.contains(bytes[position + 4] | 0x20)
        {
          return false
        }
        position += 1
      }
      return true
    }
  }

  private static func matches(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ word: StaticString) -> Bool {
    guard bytes.count - start >= word.utf8CodeUnitCount else { return false }
    for offset in 0..<word.utf8CodeUnitCount where bytes[start + offset] | 0x20 != word.utf8Start[offset] {
      return false
    }
    return true
  }
}
