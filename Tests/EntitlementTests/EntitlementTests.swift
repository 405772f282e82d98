import API
import Postgres
import Primitives
import RPC
import ServiceKit
import TestKit
import Testing
import entitlement

@Suite struct EntitlementTests {
  private typealias Entitlement = EntitlementV1.EntitlementServiceMethods
  private typealias Grant = EntitlementV1.GrantServiceMethods

  private func own(_ database: Database, _ account: Identifier) async throws -> EntitlementV1.GetEntitlementResponse {
    try await EntitlementService(database).getEntitlement(.init(), .owner(account, Entitlement.getEntitlement))
  }

  private func grant(_ database: Database, _ account: String) async throws -> EntitlementV1.EntitlementState {
    let request = EntitlementV1.GetGrantRequest(accountID: account)
    return try await GrantService(database).getGrant(request, .service("vault", Grant.getGrant)).state
  }

  @Test("EN-10 without a purchase an entitlement is NOT_PURCHASED, for the owner and for vault")
  func notPurchased() async throws {
    try await TestRuntime.with(name: "entitlement", migrations: Migrations.all) { runtime in
      let account = Identifier()
      let own = try await own(runtime.database, account)
      let grant = try await grant(runtime.database, "\(account)")
      #expect(own == .init(state: .notPurchased))
      #expect(grant == .notPurchased)
    }
  }

  @Test("EN-10 an entitlement is read as it was granted, and by its owner only")
  func granted() async throws {
    try await TestRuntime.with(name: "entitlement", migrations: Migrations.all) { runtime in
      let states: [(EntitlementV1.EntitlementState, Identifier)] = [
        (.purchased, Identifier()), (.refunded, Identifier()),
      ]
      let time = Instant(seconds: 1_800_000_000)
      for (state, account) in states {
        _ = try await runtime.database.execute(
          "INSERT INTO grants (account_id, state, grant_time) VALUES (\(account), \(state.rawValue), \(time))")
      }
      for (state, account) in states {
        #expect(
          try await own(runtime.database, account) == .init(state: state, grantTime: .init(seconds: 1_800_000_000)))
        #expect(try await grant(runtime.database, "\(account)") == state)
      }
      #expect(try await own(runtime.database, Identifier()).state == .notPurchased)
    }
  }

  @Test("EN-10 no row may say anything but purchased or refunded", arguments: [Int32(0), 1, 4])
  func states(_ state: Int32) async throws {
    try await TestRuntime.with(name: "entitlement", migrations: Migrations.all) { runtime in
      await #expect(throws: PostgresError.self) {
        try await runtime.database.execute(
          "INSERT INTO grants (account_id, state, grant_time) VALUES (\(Identifier()), \(state), now())")
      }
    }
  }

  @Test("EN-10 an account id that is no UUID is refused by name, and nobody reads without being known")
  func badCalls() async throws {
    try await TestRuntime.with(name: "entitlement", migrations: Migrations.all) { runtime in
      #expect(try await refusal { try await grant(runtime.database, "x") }.violations.map(\.field) == ["account_id"])
      let anonymous = CallContext.anonymous(Entitlement.getEntitlement)
      let error = try await refusal {
        try await EntitlementService(runtime.database).getEntitlement(.init(), anonymous)
      }
      #expect(error.code == .unauthenticated)
    }
  }

  @Test("EN-10 the owner and vault read, and nobody else")
  func access() {
    #expect(
      EntitlementParts.access == [Entitlement.getEntitlement: .owner, Grant.getGrant: .services(["vault"])])
  }

  @Test("entitlement lists every migration file, in order")
  func migrations() {
    #expect(Migrations.all.map(\.name) == migrationFiles(of: "entitlement"))
  }
}
