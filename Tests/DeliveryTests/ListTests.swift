import API
import Postgres
import Primitives
import RPC
import TestKit
import Testing

@testable import delivery

@Suite struct ListTests {
  private func scheduled(_ count: Int, _ body: (DeliveryFixture) async throws -> Void) async throws {
    try await DeliveryFixture.with { fixture in
      let people = fixture.recipients("anna")
      for day in 0..<count {
        fixture.message(to: people, .relativeDelay(.init(count: Int32(day / 2 + 1), unit: .days)))
      }
      try await fixture.deliver()
      try await body(fixture)
    }
  }

  @Test("DE-13 the administrator who confirmed sees every delivery, page by page, by due time")
  func pages() async throws {
    try await scheduled(7) { fixture in
      var seen: [DeliveryV1.Delivery] = []
      var token = ""
      var pages = 0
      repeat {
        let page = try await fixture.list(size: 3, token: token)
        #expect(page.counts == [.init(status: .pending, count: 7)] && page.scheduled)
        seen += page.deliveries
        token = page.nextPageToken
        pages += 1
      } while !token.isEmpty
      #expect(pages == 3 && Set(seen.map(\.deliveryID)).count == 7)
      let times = seen.compactMap { $0.dueTime.flatMap { Instant($0) } }
      #expect(times == times.sorted() && times.count == 7)
      #expect(try await fixture.list(size: 7).nextPageToken.isEmpty)
      #expect(try await fixture.list().deliveries == seen)
    }
  }

  @Test("DE-13 nobody else sees them, and cannot tell whether there are any")
  func others() async throws {
    try await scheduled(1) { fixture in
      let stranger = try await refusal { try await fixture.list(by: Identifier()) }
      let author = try await refusal { try await fixture.list(by: fixture.author) }
      let missing = try await refusal { try await fixture.list(Identifier()) }
      #expect(stranger.code == .notFound && author.message == missing.message && stranger.message == missing.message)
      let request = DeliveryV1.ListDeliveriesRequest(accountID: "\(fixture.author)")
      let method = DeliveryFixture.Calls.listDeliveries
      for context in [CallContext.anonymous(method), .service("vault", method)] {
        let refused = try await refusal { try await fixture.service.listDeliveries(request, context) }
        #expect(refused.code == .unauthenticated)
      }
    }
  }

  @Test("DE-13 a page token is of no use for another account or caller, and wrong arguments are refused")
  func tokens() async throws {
    try await scheduled(3) { fixture in
      let other = Identifier()
      try await fixture.confirm(fixture.confirmed(other))
      let token = try await fixture.list(size: 1).nextPageToken
      for refused in [
        try await refusal { try await fixture.list(other, token: token) },
        try await refusal { try await fixture.list(by: Identifier(), token: token) },
        try await refusal { try await fixture.list(token: "x") },
        try await refusal { try await fixture.list(size: -1) },
      ] {
        #expect(refused.code == .invalidArgument)
      }
      let request = DeliveryV1.ListDeliveriesRequest(accountID: "x")
      let context = CallContext.owner(fixture.administrator, DeliveryFixture.Calls.listDeliveries)
      #expect(try await refusal { try await fixture.service.listDeliveries(request, context) }.code == .invalidArgument)
    }
  }

  @Test("DE-13 counts tell the stages apart")
  func counts() async throws {
    try await DeliveryFixture.with { fixture in
      fixture.message(to: fixture.recipients("anna", "bert", "cora", "dora", declined: ["dora"]))
      try await fixture.deliver()
      let sends = fixture.standIns.state.sends
      try await fixture.notificationSent(sends[0].requestID)
      _ = try await fixture.openLink(fixture.tokens()[1])
      let counts = try await fixture.list().counts
      #expect(Set(counts.map(\.status)) == [.pending, .sent, .viewed, .suppressed])
      #expect(counts.allSatisfy { $0.count == 1 })
      let viewed = try #require(try await fixture.list().deliveries.first { $0.status == .viewed })
      #expect(viewed.sendTime != nil && viewed.viewTime != nil && viewed.acknowledgeTime == nil && !viewed.late)
    }
  }
}
