import API
import Postgres
import Primitives
import RPC
import Sealing
import TestKit
import Testing

@testable import delivery

@Suite struct LinkTests {
  /// One delivered letter; `body` gets the token of its link.
  private func delivered(_ body: (DeliveryFixture, String) async throws -> Void) async throws {
    try await DeliveryFixture.with { fixture in
      fixture.message(to: fixture.recipients("anna"))
      try await fixture.deliver()
      try await body(fixture, try #require(fixture.tokens().first))
    }
  }

  @Test("P6 looking at a link says whose message waits and changes nothing")
  func look() async throws {
    try await delivered { fixture, token in
      let before = try await fixture.everything()
      for _ in 0..<3 {
        let link = try await fixture.getLink(token)
        #expect(link.senderName == "Karl" && link.recipientName == "anna" && link.type == .letter)
        #expect(link.deliverTime != nil && link.viewTime == nil)
      }
      #expect(try await fixture.everything() == before)
      #expect(fixture.standIns.state.reads.isEmpty)
    }
  }

  @Test("DE-12 DE-15 opening a link shows the message and marks it as viewed once")
  func open() async throws {
    try await delivered { fixture, token in
      let first = try await fixture.openLink(token)
      #expect(first.title == "For you" && first.body == "Dear **you**" && first.senderName == "Karl")
      #expect(first.viewTime != nil && first.acknowledgeTime == nil && first.type == .letter)
      let second = try await fixture.openLink(token)
      #expect(second == first)
      #expect(try await fixture.getLink(token).viewTime == first.viewTime)
      #expect(try await fixture.events() == ["DeliveryDue", "DeliverySent", "MessageViewed"])
      let read = try #require(fixture.standIns.state.reads.first)
      #expect(read.statement == (try await fixture.release().statement))
    }
  }

  @Test("DE-16 acknowledging is recorded once and implies viewed, also when it comes from many sides at once")
  func acknowledge() async throws {
    try await delivered { fixture, token in
      let times = try await withThrowingTaskGroup(of: GoogleProtobuf.Timestamp?.self) { group in
        for _ in 0..<10 { group.addTask { try await fixture.acknowledge(token).acknowledgeTime } }
        return try await group.reduce(into: [GoogleProtobuf.Timestamp?]()) { $0.append($1) }
      }
      #expect(times[0] != nil && times.allSatisfy { $0 == times[0] })
      #expect(try await fixture.events() == ["DeliveryDue", "DeliverySent", "MessageViewed", "MessageAcknowledged"])
      let opened = try await fixture.openLink(token)
      #expect(opened.acknowledgeTime == times[0] && opened.viewTime != nil)
      #expect(try await fixture.texts("SELECT status FROM deliveries") == ["viewed"])
    }
  }

  @Test("DE-12 while the vault is away nothing is marked")
  func vaultAway() async throws {
    try await delivered { fixture, token in
      let before = try await fixture.everything()
      fixture.standIns.set { $0.failures["readDelivered"] = .unavailable("away") }
      #expect(try await refusal { try await fixture.openLink(token) }.code == .unavailable)
      #expect(try await fixture.everything() == before)
    }
  }

  @Test("DE-10 a link that is unknown, misshapen, revoked or past its year opens nothing")
  func closed() async throws {
    try await delivered { fixture, token in
      for wrong in ["", "x", token + "A", String(token.dropLast()), LinkToken.random().text.reveal()] {
        #expect(try await refusal { try await fixture.getLink(wrong) }.code == .notFound)
        #expect(try await refusal { try await fixture.openLink(wrong) }.code == .notFound)
        #expect(try await refusal { try await fixture.acknowledge(wrong) }.code == .notFound)
      }
      let open = "UPDATE links SET revoke_time = NULL, expire_time = now() + interval '1 minute'"
      for close in ["revoke_time = now()", "expire_time = now()"] {
        try await fixture.database.execute("UPDATE links SET \(unescaped: close)")
        #expect(try await refusal { try await fixture.openLink(token) }.code == .notFound)
        #expect(try await refusal { try await fixture.acknowledge(token) }.code == .notFound)
        try await fixture.database.execute("\(unescaped: open)")
      }
      #expect(try await fixture.texts("SELECT status FROM deliveries") == ["pending"])
      _ = try await fixture.openLink(token)
    }
  }

  @Test("DE-10 a link is good for 365 days, and only its hash is kept")
  func stored() async throws {
    try await delivered { fixture, token in
      let rows = try await fixture.database.query(
        "SELECT token_hash, (expire_time - create_time)::text, links::text FROM links")
      let (hash, life, text) = try rows[0].decode(([UInt8], String, String).self)
      #expect(hash == LinkToken(token)?.hash && life == "365 days" && !text.contains(token))
    }
  }

  @Test("DE-12 the status goes pending, sent, viewed and never back")
  func status() async throws {
    try await delivered { fixture, token in
      let id = try await fixture.texts("SELECT delivery_id::text FROM deliveries")[0]
      try await fixture.notificationSent(id)
      #expect(try await fixture.texts("SELECT status FROM deliveries") == ["sent"])
      try await fixture.notificationSent(id)
      try await fixture.notificationSent("\(Identifier())")
      _ = try await fixture.openLink(token)
      try await fixture.notificationSent(id)
      #expect(try await fixture.texts("SELECT status FROM deliveries") == ["viewed"])
      #expect(try await fixture.events() == ["DeliveryDue", "DeliverySent", "MessageViewed"])
    }
  }

  @Test("DE-13 the database itself keeps deliveries and refuses a step back")
  func kept() async throws {
    try await delivered { fixture, token in
      let steps = [
        ("pending", "pending"), ("pending", "suppressed"), ("sent", "pending"), ("viewed", "sent"),
        ("viewed", "pending"),
      ]
      for (from, to) in steps where from != to {
        if from != "pending" { try await fixture.database.execute("UPDATE deliveries SET status = \(from)") }
        await #expect(throws: PostgresError.self) {
          try await fixture.database.execute("UPDATE deliveries SET status = \(to)")
        }
      }
      await #expect(throws: PostgresError.self) { try await fixture.database.execute("DELETE FROM deliveries") }
      await #expect(throws: PostgresError.self) {
        try await fixture.database.execute("TRUNCATE deliveries CASCADE")
      }
      #expect(try await fixture.texts("SELECT status FROM deliveries") == ["viewed"])
    }
  }

  @Test("OP-31 a suppressed delivery stays suppressed and no link opens it")
  func suppressed() async throws {
    try await DeliveryFixture.with { fixture in
      fixture.message(to: fixture.recipients("bert", declined: ["bert"]))
      try await fixture.deliver()
      for status in ["pending", "sent", "viewed"] {
        await #expect(throws: PostgresError.self) {
          try await fixture.database.execute("UPDATE deliveries SET status = \(status)")
        }
      }
      let token = LinkToken.random()
      try await fixture.database.execute(
        """
        INSERT INTO links (token_hash, delivery_id, expire_time)
        SELECT \(token.hash), delivery_id, now() + interval '1 day' FROM deliveries
        """)
      #expect(try await refusal { try await fixture.openLink(token.text.reveal()) }.code == .notFound)
    }
  }

  @Test("NO-6 a mail that failed for good marks the delivery, which stays pending")
  func failedMail() async throws {
    try await delivered { fixture, _ in
      let id = try await fixture.texts("SELECT delivery_id::text FROM deliveries")[0]
      try await fixture.database.transaction {
        try await DeliveryEvents.notificationFailed(.init(notificationID: id, channel: 1), in: $0)
      }
      #expect(try await fixture.count("deliveries WHERE status = 'pending' AND fail_time IS NOT NULL") == 1)
    }
  }
}
