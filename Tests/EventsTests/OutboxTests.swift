import API
import Events
import Postgres
import Primitives
import Protobuf
import ServiceKit
import TestKit
import Testing

@Suite struct OutboxTests {
  @Test("D2 an event exists exactly when its transaction is committed")
  func transactional() async throws {
    try await EventsFixture.with { fixture in
      struct Undone: Error {}
      await #expect(throws: Undone.self) {
        try await fixture.database.transaction { transaction in
          try await transaction.publish(EventsFixture.event("undone"), subject: Identifier())
          throw Undone()
        }
      }
      try await fixture.publish("kept")
      #expect(try await fixture.read() == [Placed(position: 1, name: "kept")])
    }
  }

  @Test("D3 a transaction that commits late gets a later position and is never passed over")
  func commitsOutOfOrder() async throws {
    try await EventsFixture.with { fixture in
      let (written, mayCommit) = (Gate(), Gate())
      let slow = Task {
        try await fixture.database.transaction { transaction in
          try await transaction.publish(EventsFixture.event("slow"), subject: Identifier())
          written.open()
          await mayCommit.wait()
        }
      }
      await written.wait()
      try await fixture.publish("quick")
      #expect(try await fixture.read() == [Placed(position: 1, name: "quick")])
      mayCommit.open()
      try await slow.value
      #expect(try await fixture.read(after: 1) == [Placed(position: 2, name: "slow")])
      #expect(try await fixture.read().map(\.position) == [1, 2])
    }
  }

  @Test("D3 positions have no gaps and never change, with writers and readers at the same time")
  func gapless() async throws {
    try await EventsFixture.with { fixture in
      let (writers, events) = (30, 3)
      let readings = try await withThrowingTaskGroup(of: [Placed].self) { group in
        for writer in 0..<writers {
          group.addTask {
            let names = (0..<events).map { "\(writer).\($0)" }
            try await patiently {
              try await fixture.database.transaction { transaction in
                try await transaction.publish(names.map { EventsFixture.event($0) }, subject: Identifier())
              }
            }
            return []
          }
        }
        for _ in 0..<3 { group.addTask { try await follow(fixture, until: writers * events) } }
        return try await group.reduce(into: [[Placed]]()) { if !$1.isEmpty { $0.append($1) } }
      }
      #expect(readings.count == 3 && Set(readings.map { $0.map(\.name) }).count == 1)
      let all = readings[0]
      #expect(all.map(\.position) == (1...Int64(writers * events)).map { $0 })
      for writer in 0..<writers {
        let own = all.filter { $0.name.hasPrefix("\(writer).") }.map(\.name)
        #expect(own == (0..<events).map { "\(writer).\($0)" })
      }
    }
  }

  private func follow(_ fixture: EventsFixture, until count: Int) async throws -> [Placed] {
    var all: [Placed] = []
    try await eventually("all events") {
      all += try await fixture.read(after: all.last?.position ?? 0, limit: 7)
      return all.count == count
    }
    return all
  }

  @Test("Events a read begins after the position, ends at the limit and brings everything that was recorded")
  func page() async throws {
    try await EventsFixture.with { fixture in
      try await fixture.publish("a", "b", "c", "d")
      #expect(try await fixture.read(after: 1, limit: 2).map(\.name) == ["b", "c"])
      #expect(try await fixture.read(after: 4).isEmpty)
      let subject = Identifier()
      try await fixture.database.transaction { transaction in
        try await transaction.publish(EventsFixture.event("e"), subject: subject, traceparent: "trace")
      }
      let stored = try await fixture.outbox.read(after: 4, limit: 1)[0]
      #expect(stored.type == DeliveryV1.DeliverySent.fullName)
      #expect(stored.subject == subject && stored.traceparent == "trace")
      #expect(stored.payload == EventsFixture.event("e").serialized())
    }
  }
}
