import API
import EventLoop
import Events
import Postgres
import Primitives
import Protobuf
import RPC
import ServiceKit
import Synchronization
import TestKit
import Testing

@Suite struct SubscriptionTests {
  private static func log(_ fixture: EventsFixture) -> EventLog {
    EventLog(database: fixture.database, schema: fixture.runtime.name)
  }

  @Test("D3 an effect that throws leaves nothing and is tried again; each event has its effect once, in order")
  func throwingEffect() async throws {
    try await EventsFixture.with { fixture in
      let server = try fixture.serve(SubscriptionTests.log(fixture))
      let failures = Mutex(0)
      let reader = fixture.subscription(port: server.port) { name in
        guard name == "b" else { return }
        try failures.withLock { count in
          count += 1
          if count < 3 { throw ServiceError.unavailable("not yet") }
        }
      }
      try await fixture.publish("a", "b", "c")
      try await fixture.running([reader]) {
        try await eventually("three effects") { try await fixture.effects().count >= 3 }
      }
      #expect(try await fixture.effects() == ["a", "b", "c"])
      #expect(failures.withLock { $0 } == 3)
      #expect(try await reader.0.position() == 3)
      await server.shutdown(grace: .zero)
    }
  }

  @Test("D3 two instances that read at once apply each event once")
  func twoInstances() async throws {
    try await EventsFixture.with { fixture in
      let server = try fixture.serve(SubscriptionTests.log(fixture))
      let names = (0..<60).map { "\($0)" }
      let readers = [fixture.subscription(port: server.port), fixture.subscription(port: server.port)]
      try await fixture.running(readers) {
        for name in names { try await fixture.publish(name) }
        try await eventually("all effects") { try await fixture.effects().count >= names.count }
      }
      #expect(try await fixture.effects() == names)
      await server.shutdown(grace: .zero)
    }
  }

  @Test("D3 a publisher that goes away and comes back is read on from the cursor")
  func publisherRestarts() async throws {
    try await EventsFixture.with { fixture in
      let log = SubscriptionTests.log(fixture)
      let first = try fixture.serve(log)
      let reader = fixture.subscription(port: first.port)
      try await fixture.running([reader]) {
        try await fixture.publish("a", "b")
        try await eventually("two effects") { try await fixture.effects().count == 2 }
        let port = first.port
        await first.shutdown(grace: .zero)
        try await fixture.publish("c")
        let second = try fixture.serve(log, port: port)
        try await fixture.publish("d")
        try await eventually("four effects") { try await fixture.effects().count >= 4 }
        await second.shutdown(grace: .zero)
      }
      #expect(try await fixture.effects() == ["a", "b", "c", "d"])
    }
  }

  @Test("D3 an event that is delivered again has no second effect")
  func repeated() async throws {
    try await EventsFixture.with { fixture in
      let (subscription, channel) = fixture.subscription(port: 1)
      let event = EventsV1.Event(
        position: 1, type: DeliveryV1.DeliverySent.fullName, payload: EventsFixture.event("a").serialized())
      #expect(try await subscription.position() == 0)
      try await subscription.apply(event, after: 0)
      await #expect(throws: CursorMoved.self) { try await subscription.apply(event, after: 0) }
      #expect(try await fixture.effects() == ["a"])
      await channel.shutdown()
    }
  }

  @Test("Events an event of another type moves the cursor and does nothing else")
  func otherTypes() async throws {
    try await EventsFixture.with { fixture in
      let (subscription, channel) = fixture.subscription(port: 1)
      _ = try await subscription.position()
      try await subscription.apply(.init(position: 1, type: "something.Newer", payload: [0xFF]), after: 0)
      #expect(try await subscription.position() == 1)
      #expect(try await fixture.effects().isEmpty)
      await channel.shutdown()
    }
  }

  @Test("Events a gap in the log is not passed over")
  func gap() async throws {
    try await EventsFixture.with { fixture in
      let holey = HoleyLog()
      let server = try fixture.serve(holey)
      let reader = fixture.subscription(port: server.port)
      try await fixture.running([reader]) {
        try await eventually("a second try") {
          _ = try await fixture.effects()
          return holey.asked.withLock { $0.count } >= 3
        }
      }
      #expect(try await fixture.effects() == ["1"])
      #expect(holey.asked.withLock { $0.prefix(3) } == [0, 1, 1])
      await server.shutdown(grace: .zero)
    }
  }

  @Test("Events a log that closes ends its subscriptions, so that its server need not wait for them")
  func close() async throws {
    try await EventsFixture.with { fixture in
      let log = SubscriptionTests.log(fixture)
      let server = try fixture.serve(log)
      try await fixture.publish("a")
      let channel = Channel(target: "127.0.0.1:\(server.port)", group: fixture.runtime.group)
      let client = EventsV1.EventServiceClient(channel)
      let stream = try await client.subscribe(.init())
      var iterator = stream.makeAsyncIterator()
      #expect(try await iterator.next()?.event?.position == 1)
      log.close()
      await server.shutdown(grace: .seconds(3600))
      var ended: ServiceError?
      do { _ = try await iterator.next() } catch { ended = error as? ServiceError }
      #expect(ended?.code == .unavailable)
      await channel.shutdown()
    }
  }

  @Test("Events a negative position is refused")
  func negative() async throws {
    try await EventsFixture.with { fixture in
      let server = try fixture.serve(SubscriptionTests.log(fixture))
      let channel = Channel(target: "127.0.0.1:\(server.port)", group: fixture.runtime.group)
      let refused = try await refusal {
        for try await _ in try await EventsV1.EventServiceClient(channel).subscribe(.init(afterPosition: -1)) {}
      }
      #expect(refused.code == .invalidArgument)
      await channel.shutdown()
      await server.shutdown(grace: .zero)
    }
  }
}

/// A publisher that has lost its second event.
private final class HoleyLog: EventsV1.EventService {
  let asked = Mutex<[Int64]>([])

  func subscribe(
    _ request: EventsV1.SubscribeRequest, _ responses: ResponseWriter<EventsV1.SubscribeResponse>,
    _ context: CallContext
  ) async throws {
    asked.withLock { $0.append(request.afterPosition) }
    for position: Int64 in [1, 3] where position > request.afterPosition {
      let payload = EventsFixture.event("\(position)").serialized()
      try await responses.write(
        .init(event: .init(position: position, type: DeliveryV1.DeliverySent.fullName, payload: payload)))
    }
  }
}
