internal import Primitives

/// Asks again and again until the answer is true; throws after 60 s. For what happens beside the test, where nothing
/// can be waited for: `condition` asks the database or another process, so that asking takes a moment.
nonisolated(nonsending) package func eventually(
  _ what: String = "the condition", _ condition: () async throws -> Bool
) async throws {
  let end = Monotonic.now().advanced(by: .seconds(60))
  while try await !condition() {
    if Monotonic.now() > end { throw TestSetupFault(text: "\(what) did not come true") }
    await Task.yield()
  }
}

/// Makes a call again while the answer is UNAVAILABLE, as its client would: on a busy machine fifty calls at once wait
/// longer for a connection than a service lets them.
nonisolated(nonsending) package func patiently<Value>(_ call: () async throws -> Value) async throws -> Value {
  let end = Monotonic.now().advanced(by: .seconds(60))
  while true {
    do {
      return try await call()
    } catch let error as ServiceError where error.code == .unavailable && Monotonic.now() < end {
      await Task.yield()
    }
  }
}
