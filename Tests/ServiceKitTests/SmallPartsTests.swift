import API
import Postgres
import Primitives
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing

@Suite struct SmallPartsTests {
  static let method = DeliveryV1.DeliveryServiceMethods.listDeliveries

  @Test("ServiceKit page sizes: none is the usual, many are the most, fewer than none are refused")
  func pageSize() throws {
    #expect(try Fields.pageSize(0, default: 20, max: 200) == 20)
    #expect(try Fields.pageSize(1, default: 20, max: 200) == 1)
    #expect(try Fields.pageSize(200, default: 20, max: 200) == 200)
    #expect(try Fields.pageSize(201, default: 20, max: 200) == 200)
    #expect(throws: ServiceError.self) { try Fields.pageSize(-1, default: 20, max: 200) }
  }

  @Test("ServiceKit identifiers are read once each, up to the limit, and a wrong one is named by its place")
  func identifiers() throws {
    let ids = [Identifier(), Identifier()]
    let texts = ids.map { "\($0)" }
    #expect(try Fields.identifiers(texts + [texts[0]], "ids", max: 3) == ids)
    #expect(throws: ServiceError.self) { try Fields.identifiers(texts + [texts[0]], "ids", max: 2) }
    #expect { try Fields.identifiers([texts[0], "x"], "ids", max: 3) } throws: {
      ($0 as? ServiceError)?.violations.map(\.field) == ["ids[1]"]
    }
    #expect(try Fields.optionalIdentifier("", "id") == nil)
    #expect(throws: ServiceError.self) { try Fields.optionalIdentifier("x", "id") }
  }

  @Test("ServiceKit a page token is good only for its caller, method and arguments")
  func pageTokens() throws {
    let sealer = try PageTokenSealer(key: Secret(randomBytes(32)))
    let owner = Identifier()
    let cursor = TimeCursor(time: Instant(microseconds: -1), id: Identifier())
    let scope = PageScope(sealer, .owner(owner, Self.method), arguments: [1])
    let token = try scope.seal(cursor)
    #expect(try scope.open(token) == cursor)
    #expect(try scope.open("") == nil)
    let other = DeliveryV1.DeliveryServiceMethods.getLink
    for foreign in [
      PageScope(sealer, .owner(Identifier(), Self.method), arguments: [1]),
      PageScope(sealer, .owner(owner, other), arguments: [1]),
      PageScope(sealer, .owner(owner, Self.method), arguments: [2]),
      PageScope(try PageTokenSealer(key: Secret(randomBytes(32))), .owner(owner, Self.method), arguments: [1]),
    ] {
      #expect { try foreign.open(token) } throws: { ($0 as? ServiceError)?.violations.first?.field == "page_token" }
    }
    #expect(throws: ServiceError.self) { try scope.open("x") }
  }

  @Test("ServiceKit a place in a list survives its bytes")
  func cursor() {
    for microseconds in [Int64.min, -1, 0, 1, Int64.max] {
      let cursor = TimeCursor(time: Instant(microseconds: microseconds), id: Identifier())
      #expect(TimeCursor(bytes: cursor.bytes) == cursor)
    }
    #expect(TimeCursor(bytes: []) == nil && TimeCursor(bytes: [UInt8](repeating: 0, count: 25)) == nil)
  }

  @Test("ServiceKit settings: plaintext only on the loopback, and every fault is named at once")
  func settings() {
    let good = [
      "ALLOW_PLAINTEXT": "true", "LISTEN": "127.0.0.1:1", "DATABASE_URL": "postgres://x",
      "KEY_ENCRYPTION_KEYS": "a " + Base64.encode(randomBytes(32)), "PAGE_TOKEN_KEY": Base64.encode(randomBytes(32)),
      "PUBLIC_URL": "https://afterthoughts.example//",
    ]
    var configuration = Configuration(environment: good)
    #expect(ServiceConfig(&configuration)?.publicURL == "https://afterthoughts.example")
    var open = Configuration(environment: good.merging(["LISTEN": "0.0.0.0:1"]) { $1 })
    #expect(ServiceConfig(&open) == nil && open.faults.count == 1)
    #expect(open.faults.allSatisfy { $0.hasPrefix("ALLOW_PLAINTEXT") })
    var empty = Configuration(environment: [:])
    #expect(ServiceConfig(&empty) == nil)
    for name in ["LISTEN", "DATABASE_URL", "KEY_ENCRYPTION_KEYS", "PAGE_TOKEN_KEY", "PUBLIC_URL", "TLS_CA_PATH"] {
      #expect(empty.faults.contains { $0.hasPrefix(name) })
    }
  }

  @Test("ServiceKit health: the process, each of its services, and nothing else; not serving once it drains")
  func health() async throws {
    try await TestRuntime.with(name: "kit", migrations: []) { runtime async throws in
      let health = HealthService(services: [StandInSends()], database: runtime.database)
      let context = CallContext.anonymous(GRPCHealthV1.HealthMethods.check)
      let name = "afterthoughts.notifications.v1.SendService"
      #expect(try await health.check(.init(), context).status == .serving)
      #expect(try await health.check(.init(service: name), context).status == .serving)
      #expect(try await refusal { try await health.check(.init(service: "x"), context) }.code == .notFound)
      health.drain()
      #expect(try await health.check(.init(), context).status == .notServing)
      #expect(try await health.check(.init(service: name), context).status == .notServing)
    }
  }

  @Test("ServiceKit a service whose database is gone is not serving, its process is")
  func healthWithoutDatabase() async throws {
    try await TestRuntime.with(name: "kit", migrations: []) { runtime async throws in
      let health = HealthService(services: [StandInSends()], database: runtime.database)
      let context = CallContext.anonymous(GRPCHealthV1.HealthMethods.check)
      await runtime.database.close()
      let name = "afterthoughts.notifications.v1.SendService"
      #expect(try await health.check(.init(service: name), context).status == .notServing)
      #expect(try await health.check(.init(), context).status == .serving)
    }
  }
}
