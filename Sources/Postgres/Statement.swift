internal import Primitives

/// One statement on its way: what to run and who waits for it.
///
/// Safety: confined to its loop once submitted; before that only its creator knows it.
final class Statement: @unchecked Sendable {
  let query: Query
  /// Whoever waits; taken when resumed, so that it happens once.
  private var continuation: UnsafeContinuation<StatementResult, any Error>?

  /// What the server answered in the present attempt.
  var result: StatementResult?
  var error: PostgresError?

  /// The waiting task was cancelled.
  var isCancelled = false
  /// Was run again because its prepared form was stale, it met a deadlock, or another's cancel request hit it.
  var wasRepeated = false
  /// Number of cancel requests of the connection when it was sent.
  var cancelRequestsBefore = 0
  /// Has left the queue of those that wait.
  var isSent = false

  init(_ query: Query) {
    self.query = query
  }

  func wait(with continuation: UnsafeContinuation<StatementResult, any Error>) {
    self.continuation = continuation
  }

  var isFinished: Bool { continuation == nil }

  func finish(_ result: StatementResult) {
    continuation?.resume(returning: result)
    continuation = nil
  }

  func fail(_ error: any Error) {
    continuation?.resume(throwing: error)
    continuation = nil
  }

  /// Forgets the answer before another attempt.
  func reset() {
    result = nil
    error = nil
  }
}

/// Statements that end with one sync: outside of BEGIN and COMMIT they are one transaction.
final class Segment {
  enum End {
    case synced
    case lost(ServiceError)
  }

  let statements: [Statement]
  /// A failure at the sync itself: a deferred constraint.
  var commitError: PostgresError?
  private var completion: ((Segment, End) -> Void)?

  init(_ statements: [Statement], completion: @escaping (Segment, End) -> Void) {
    self.statements = statements
    self.completion = completion
  }

  /// The first failure of the segment.
  var error: PostgresError? {
    for statement in statements {
      if let error = statement.error { return error }
    }
    return commitError
  }

  func finish(_ end: End) {
    let completion = self.completion
    self.completion = nil
    completion?(self, end)
  }
}
