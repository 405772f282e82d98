import Postgres
import Primitives
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ListenTests {
  @Test("Postgres a listener hears notifications, and is told to look again after its session was lost")
  func listen() async throws {
    try await PostgresFixture.with { fixture in
      let (heard, continuation) = AsyncStream.makeStream(of: String.self)
      var payloads = heard.makeAsyncIterator()
      let registration = fixture.database.listen("an \"odd\" channel") { continuation.yield($0) }
      #expect(await payloads.next() == "")
      let notify: Query = "SELECT pg_notify('an \"odd\" channel', \("first"))"
      _ = try await fixture.database.query(notify)
      #expect(await payloads.next() == "first")

      #expect(try await fixture.endSessions(lastQueryLike: "LISTEN%") == 1)
      #expect(await payloads.next() == "")
      _ = try await fixture.database.query("SELECT pg_notify('an \"odd\" channel', 'second')")
      #expect(await payloads.next() == "second")
      registration.cancel()
    }
  }

  @Test("Postgres listeners of two channels hear their own, and a cancelled one hears nothing more")
  func twoChannels() async throws {
    try await PostgresFixture.with { fixture in
      let (heard, continuation) = AsyncStream.makeStream(of: String.self)
      var payloads = heard.makeAsyncIterator()
      let first = fixture.database.listen("a") { continuation.yield("a:\($0)") }
      #expect(await payloads.next() == "a:")
      let second = fixture.database.listen("b") { continuation.yield("b:\($0)") }
      #expect(await payloads.next() == "b:")
      first.cancel()
      _ = try await fixture.database.query("SELECT pg_notify('a', '1'), pg_notify('b', '2')")
      #expect(await payloads.next() == "b:2")
      second.cancel()
    }
  }
}
