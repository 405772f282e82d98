internal import Primitives

/// Asks again and again until the answer is true; throws after 60 s. For what happens beside the test, where nothing
/// can be waited for: `condition` asks the database or another process, so that asking takes a moment.
package func eventually(_ what: String = "the condition", _ condition: () async throws -> Bool) async throws {
  let end = Monotonic.now().advanced(by: .seconds(60))
  while try await !condition() {
    if Monotonic.now() > end { throw TestSetupFault(text: "\(what) did not come true") }
    await Task.yield()
  }
}
