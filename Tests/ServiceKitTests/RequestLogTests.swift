import API
import Postgres
import Primitives
import Protobuf
import RPC
import ServiceKit
import Synchronization
import TestKit
import Testing

@Suite struct RequestLogTests {
  typealias Request = NotificationsV1.MarkReadRequest
  typealias Response = DeliveryV1.GetLinkResponse

  static let method = NotificationsV1.NotificationsServiceMethods.markRead

  /// A table for effects, and one caller.
  struct Fixture: Sendable {
    let runtime: ServiceRuntime
    let account = Identifier()
    var requests: RequestLog { runtime.requests }
    var context: CallContext { .owner(account, RequestLogTests.method) }

    static func with(_ body: (Fixture) async throws -> Void) async throws {
      let effects = Migration("v0001_create_effects", Array("CREATE TABLE effects (name text NOT NULL)".utf8))
      try await TestRuntime.with(name: "kit", migrations: [effects]) { try await body(Fixture(runtime: $0)) }
    }

    func request(_ id: Identifier, _ noticeID: String = "") -> Request {
      Request(requestID: "\(id)", notificationIDs: [noticeID])
    }

    /// A call whose answer no other run could give.
    func call(
      _ request: Request, _ context: CallContext? = nil, replayFor: Duration = .seconds(86_400)
    ) async throws -> Response {
      try await requests.once(request.requestID, request, context ?? self.context, replayFor: replayFor) {
        transaction in
        _ = try await transaction.execute("INSERT INTO effects VALUES ('x')")
        return Response(senderName: "\(Identifier())")
      }
    }

    func count(_ table: String) async throws -> Int {
      try await runtime.database.query("SELECT count(*) FROM \(unescaped: table)")[0].decode(Int.self)
    }

    func age(_ interval: String) async throws {
      try await runtime.database.execute(
        "UPDATE requests SET create_time = now() - \(interval)::text::interval")
    }
  }

  @Test("D1 fifty calls at once with one id have one effect and equal answers")
  func parallel() async throws {
    try await Fixture.with { fixture in
      let request = fixture.request(Identifier())
      let answers = try await withThrowingTaskGroup(of: Response.self) { group in
        for _ in 0..<50 { group.addTask { try await patiently { try await fixture.call(request) } } }
        return try await group.reduce(into: [Response]()) { $0.append($1) }
      }
      #expect(answers.count == 50 && answers.allSatisfy { $0 == answers[0] && !$0.senderName.isEmpty })
      #expect(try await fixture.count("effects") == 1)
    }
  }

  @Test("D1 the id with another request is refused and changes nothing")
  func reused() async throws {
    try await Fixture.with { fixture in
      let id = Identifier()
      let first = try await fixture.call(fixture.request(id, "a"))
      let refused = try await refusal { try await fixture.call(fixture.request(id, "b")) }
      #expect(refused.code == .invalidArgument && refused.reason == "REQUEST_ID_REUSED")
      #expect(refused.violations.map(\.field) == ["request_id"])
      #expect(try await fixture.count("effects") == 1)
      #expect(try await fixture.call(fixture.request(id, "a")) == first)
    }
  }

  @Test("D1 the id belongs to its caller and method")
  func scope() async throws {
    try await Fixture.with { fixture in
      let request = fixture.request(Identifier())
      let other = NotificationsV1.NotificationsServiceMethods.listNotifications
      let contexts: [CallContext] = [
        fixture.context, .owner(Identifier(), Self.method), .owner(fixture.account, other),
        .service("vault", Self.method), .service("delivery", Self.method), .anonymous(Self.method),
      ]
      var answers: Set<String> = []
      for context in contexts { answers.insert(try await fixture.call(request, context).senderName) }
      #expect(answers.count == contexts.count)
      #expect(try await fixture.count("effects") == contexts.count)
    }
  }

  @Test("D1 a failed call leaves nothing behind and can be made again")
  func failed() async throws {
    try await Fixture.with { fixture in
      let request = fixture.request(Identifier())
      let refused = try await refusal {
        try await fixture.requests.once(request.requestID, request, fixture.context) { transaction -> Response in
          _ = try await transaction.execute("INSERT INTO effects VALUES ('x')")
          throw ServiceError.precondition("NOT_NOW", "Not now.")
        }
      }
      #expect(refused.reason == "NOT_NOW")
      #expect(try await fixture.count("effects") == 0)
      #expect(try await fixture.count("requests") == 0)
      _ = try await fixture.call(request)
      #expect(try await fixture.count("effects") == 1)
    }
  }

  @Test("D1 an answer can be had again for 24 hours, or for as long as the call says")
  func window() async throws {
    try await Fixture.with { fixture in
      let request = fixture.request(Identifier())
      let first = try await fixture.call(request)
      try await fixture.age("23 hours 59 minutes")
      #expect(try await fixture.requests.purge() == 0)
      #expect(try await fixture.call(request) == first)
      let spent = try await refusal { try await fixture.call(request, replayFor: .seconds(600)) }
      #expect(spent.code == .failedPrecondition && spent.reason == "REQUEST_ID_SPENT")
      try await fixture.age("24 hours 1 second")
      #expect(try await fixture.requests.purge() == 1)
      #expect(try await fixture.call(request) != first)
    }
  }

  @Test("D1 what is prepared is prepared before the transaction, and not again for a repeat")
  func prepared() async throws {
    try await Fixture.with { fixture async throws in
      let request = fixture.request(Identifier())
      let prepared = Mutex(0)
      let call: @Sendable () async throws -> Response = {
        try await fixture.requests.once(
          request.requestID, request, fixture.context,
          prepare: {
            prepared.withLock { $0 += 1 }
            guard try await fixture.count("requests") == 0 else { throw ServiceError.unavailable("inside") }
            if prepared.withLock({ $0 }) == 1 { throw ServiceError.unavailable("at first") }
            return "name"
          },
          { Response(senderName: $0 + (try await $1.query("SELECT 'x'")[0].decode(String.self, at: 0))) })
      }
      #expect(try await refusal { try await call() }.message == "at first")
      #expect(try await call().senderName == "namex")
      #expect(try await call().senderName == "namex")
      #expect(prepared.withLock { $0 } == 2)
    }
  }

  @Test("D1 an id that is no UUID is refused, and stored answers cannot be read")
  func stored() async throws {
    try await Fixture.with { fixture in
      for id in ["", "x", "00000000-0000-0000-0000-00000000000"] {
        let refused = try await refusal { try await fixture.call(Request(requestID: id)) }
        #expect(refused.violations.map(\.field) == ["request_id"])
      }
      let answer = try await fixture.call(fixture.request(Identifier())).senderName
      let row = try await fixture.runtime.database.query("SELECT response FROM requests")[0].decode([UInt8].self)
      #expect(!row.isEmpty && !String(decoding: row, as: UTF8.self).contains(answer))
    }
  }

  @Test("D1 the first call of a new service makes the service's key and is answered, and its repeat too")
  func firstCall() async throws {
    try await Fixture.with { fixture in
      let database = fixture.runtime.database
      try await database.execute("DELETE FROM data_keys")
      let requests = RequestLog(database: database, dataKeys: DataKeys(keys: fixture.runtime.config.keys))
      let request = fixture.request(Identifier())
      let first = try await requests.once(request.requestID, request, fixture.context) { _ in
        Response(senderName: "first")
      }
      let second = try await requests.once(request.requestID, request, fixture.context) { _ in
        Response(senderName: "second")
      }
      #expect(first.senderName == "first" && second == first)
      let count: Query = "SELECT count(*) FROM data_keys"
      #expect(try await database.query(count)[0].decode(Int.self) == 1)
    }
  }
}
