internal import EventLoop
internal import Primitives

/// Takes statements on its loop and answers them.
protocol StatementRunner: AnyObject, Sendable {
  var loop: EventLoop { get }
  /// Loop thread only.
  func submit(_ statement: Statement)
  /// Loop thread only: nobody waits for `statement` any more.
  func cancel(_ statement: Statement)
}

/// A cancelled statement may still end by itself for so long before the server is asked to stop it: most do.
let cancelDelay = Duration.milliseconds(20)

extension StatementRunner {
  /// Runs `query` and waits for its answer. A cancelled task gets `CancellationError` once the server has stopped.
  nonisolated(nonsending) func run(_ query: Query) async throws -> StatementResult {
    let statement = Statement(query)
    return try await withTaskCancellationHandler {
      try await withUnsafeThrowingContinuation { continuation in
        statement.wait(with: continuation)
        if loop.isCurrent { submit(statement) } else { loop.execute { self.submit(statement) } }
      }
    } onCancel: {
      loop.execute {
        statement.isCancelled = true
        self.cancel(statement)
      }
    }
  }
}
