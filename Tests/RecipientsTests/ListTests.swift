import API
import Postgres
import Primitives
import TestKit
import Testing
import recipients

struct ListTests {
  @Test("RE-8 the list has every recipient once, by name as people sort, in pages of any size, and nobody else's")
  func pages() async throws {
    try await RecipientsFixture.with { fixture in
      let names = ["ärger", "Anna", "anna", "Ben", "Zoe", "Ben"]
      for (index, name) in names.enumerated() {
        _ = try await fixture.add(RecipientsFixture.request(name, "r\(index)@afterthoughts.example"))
      }
      _ = try await fixture.add(by: fixture.stranger)
      let all = try await fixture.list()
      #expect(all.recipients.map(\.name) == ["anna", "Anna", "ärger", "Ben", "Ben", "Zoe"])
      #expect((all.totalSize, all.nextPageToken) == (6, ""))
      for order in [RecipientsV1.RecipientOrder.unspecified, .name, .relationship, .acceptance] {
        for size in [Int32(1), 2, 5, 6, 201] {
          let request = RecipientsV1.ListRecipientsRequest(pageSize: size, order: order)
          #expect(try await ListTests.walk(fixture, request) == all.recipients)
        }
      }
    }
  }

  @Test("RE-8 the default page has 50 rows, the largest 200; a negative size is refused")
  func pageSizes() async throws {
    try await RecipientsFixture.with { fixture in
      try await fixture.database.execute(
        """
        INSERT INTO recipients (recipient_id, account_id, name, email, email_key, phone, relationship)
        SELECT gen_random_uuid(), \(fixture.author), 'N', n || '@x.example', n || '@x.example', '', 'other'
        FROM generate_series(1, 202) n
        """)
      for (asked, given) in [(0, 50), (199, 199), (200, 200), (201, 200)] as [(Int32, Int)] {
        #expect(try await fixture.list(.init(pageSize: asked)).recipients.count == given)
      }
      let error = try await refusal { try await fixture.list(.init(pageSize: -1)) }
      #expect(error.violations.map(\.field) == ["page_size"])
      let rows = try await ListTests.walk(fixture, .init(pageSize: 7))
      #expect(Set(rows.map(\.recipientID)).count == 202 && rows.count == 202)
    }
  }

  @Test("RE-8 names of the greatest size do not outgrow a page token")
  func longNames() async throws {
    try await RecipientsFixture.with { fixture in
      let name = String(repeating: "a" + String(repeating: "\u{0301}", count: 14), count: 80)
      for index in 0..<3 {
        _ = try await fixture.add(RecipientsFixture.request(name, "r\(index)@afterthoughts.example"))
      }
      let rows = try await ListTests.walk(fixture, .init(pageSize: 1))
      #expect(Set(rows.map(\.recipientID)).count == 3 && rows.count == 3)
    }
  }

  @Test("RE-8 a page goes on after a row that was removed meanwhile")
  func removedBetween() async throws {
    try await RecipientsFixture.with { fixture in
      for name in ["Ann", "Ben", "Cai"] { _ = try await fixture.add(RecipientsFixture.request(name)) }
      let first = try await fixture.list(.init(pageSize: 2))
      try await fixture.remove(first.recipients[1])
      let next = try await fixture.list(.init(pageSize: 2, pageToken: first.nextPageToken))
      #expect(next.recipients.map(\.name) == ["Cai"])
    }
  }

  @Test("RE-9 filters by relationship and answer, sorts by either")
  func filters() async throws {
    try await RecipientsFixture.with { fixture in
      for (name, relationship) in [("Ann", 4), ("Ben", 1), ("Cai", 3), ("Dan", 1)] as [(String, Int32)] {
        var request = RecipientsFixture.request(name)
        (request.relationship, request.promptChannels) = (.init(rawValue: relationship), [.email])
        _ = try await fixture.add(request)
      }
      let tokens = try await fixture.tokens()
      _ = try await fixture.answer(tokens[1], .accepted)
      _ = try await fixture.answer(tokens[0], .declined)
      func names(_ request: RecipientsV1.ListRecipientsRequest) async throws -> [String] {
        let list = try await fixture.list(request)
        #expect(Int(list.totalSize) == list.recipients.count)
        return list.recipients.map(\.name)
      }
      #expect(try await names(.init(relationship: .family)) == ["Ben", "Dan"])
      #expect(try await names(.init(acceptance: .pending)) == ["Cai", "Dan"])
      #expect(try await names(.init(acceptance: .accepted)) == ["Ben"])
      #expect(try await names(.init(relationship: .family, acceptance: .declined)) == [])
      #expect(try await names(.init(order: .relationship)) == ["Cai", "Ben", "Dan", "Ann"])
      #expect(try await names(.init(order: .acceptance)) == ["Ben", "Ann", "Cai", "Dan"])
      let walked = try await ListTests.walk(fixture, .init(pageSize: 1, order: .acceptance)).map(\.name)
      #expect(walked == ["Ben", "Ann", "Cai", "Dan"])
      let error = try await refusal {
        try await fixture.list(
          .init(
            search: String(repeating: "x", count: 101), relationship: .init(rawValue: 5),
            acceptance: .init(rawValue: 4), order: .init(rawValue: 4)))
      }
      #expect(error.violations.map(\.field) == ["search", "relationship", "acceptance", "order"])
    }
  }

  @Test(
    "RE-9 search finds part of a name or address in any case, and takes no character for a pattern",
    arguments: [
      ("JÖRG", ["Jörg O'Hara"]), ("o'h", ["Jörg O'Hara"]), ("first_x", ["Zoe"]), ("FIRST", ["Zoe"]), ("%", []),
      ("t_x", ["Zoe"]), ("irstx", []), ("example", ["Jörg O'Hara", "Zoe"]), (" zoe ", ["Zoe"]),
    ] as [(String, [String])])
  func search(_ text: String, _ expected: [String]) async throws {
    try await RecipientsFixture.with { fixture in
      _ = try await fixture.add(RecipientsFixture.request("Jörg O'Hara", "jo@afterthoughts.example"))
      _ = try await fixture.add(RecipientsFixture.request("Zoe", "first_x@afterthoughts.example"))
      let list = try await fixture.list(.init(search: text))
      #expect(list.recipients.map(\.name) == expected && list.totalSize == expected.count)
    }
  }

  @Test("RE-8 a page token serves only the caller and the filter it was made for")
  func pageTokens() async throws {
    try await RecipientsFixture.with { fixture in
      for name in ["Ann", "Ben", "Cai"] { _ = try await fixture.add(RecipientsFixture.request(name)) }
      let token = try await fixture.list(.init(pageSize: 1)).nextPageToken
      #expect(try await fixture.list(.init(pageSize: 2, pageToken: token)).recipients.map(\.name) == ["Ben", "Cai"])
      let attempts: [(RecipientsV1.ListRecipientsRequest, Identifier)] = [
        (.init(pageToken: token), fixture.stranger), (.init(pageToken: token, search: "e"), fixture.author),
        (.init(pageToken: token, relationship: .friend), fixture.author),
        (.init(pageToken: token, acceptance: .pending), fixture.author),
        (.init(pageToken: token, order: .acceptance), fixture.author),
        (.init(pageToken: String(token.dropLast())), fixture.author), (.init(pageToken: "x"), fixture.author),
      ]
      for (request, caller) in attempts {
        let error = try await refusal { try await fixture.list(request, by: caller) }
        #expect((error.code, error.violations.map(\.field)) == (.invalidArgument, ["page_token"]))
      }
    }
  }

  /// All pages, one after the other.
  private static func walk(
    _ fixture: RecipientsFixture, _ request: RecipientsV1.ListRecipientsRequest
  ) async throws -> [RecipientsV1.Recipient] {
    var request = request
    var rows: [RecipientsV1.Recipient] = []
    repeat {
      let page = try await fixture.list(request)
      rows += page.recipients
      request.pageToken = page.nextPageToken
    } while !request.pageToken.isEmpty
    return rows
  }
}
