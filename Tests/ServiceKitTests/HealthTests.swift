import API
import EventLoop
import Postgres
import Primitives
import RPC
import ServiceKit
import TestKit
import Testing

@Suite struct HealthTests {
  /// A database that can be taken away and given back.
  private struct Switch {
    private let admin: Database
    private let name: String

    init(_ runtime: ServiceRuntime) async throws {
      var environment = Configuration.process()
      admin = Database(url: environment.secret("AFTERTHOUGHTS_TEST_DATABASE_URL"), group: runtime.group)
      name = try await runtime.database.query("SELECT current_database()::text")[0].decode(String.self, at: 0)
    }

    func turnOff() async throws {
      try await admin.execute("ALTER DATABASE \(unescaped: name) ALLOW_CONNECTIONS false")
      _ = try await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = \(name)")
    }

    func turnOn() async throws {
      try await admin.execute("ALTER DATABASE \(unescaped: name) ALLOW_CONNECTIONS true")
    }

    func close() async { await admin.close() }
  }

  typealias Status = GRPCHealthV1.HealthCheckResponse.ServingStatus

  @Test("R8 readiness follows the database, liveness does not, and Watch tells each change once")
  func watch() async throws {
    try await TestRuntime.with(name: "health", migrations: []) { runtime in
      let probe = ProbeService { _ in }
      let health = HealthService(services: [probe], database: runtime.database)
      var rig = ProbeRig(group: runtime.group)
      let client = GRPCHealthV1.HealthClient(try rig.serve([health, probe]))
      let options = CallOptions(timeout: .seconds(120))
      func check(_ name: String) async throws -> Status {
        try await client.check(.init(service: name), options).status
      }
      let database = try await Switch(runtime)
      var changes: [Status] = []
      var end: ServiceError?
      do {
        for try await change in try await client.watch(.init(service: "test.Probe"), options) {
          changes.append(change.status)
          #expect(try await check("") == (changes.count == 4 ? .notServing : .serving))
          #expect(try await check("test.Probe") == change.status)
          switch changes.count {
          case 1: try await database.turnOff()
          case 2: try await database.turnOn()
          default: health.drain()
          }
        }
      } catch let error as ServiceError {
        end = error
      }
      #expect(changes == [.serving, .notServing, .serving, .notServing])
      #expect(end?.code == .unavailable)
      #expect(await !health.isReady())
      await database.close()
      await rig.end()
    }
  }

  @Test("R8 a name that is not served is NOT_FOUND to Check, and SERVICE_UNKNOWN to Watch, which stays open")
  func unknown() async throws {
    let group = EventLoopGroup(count: 1)
    let health = HealthService(services: [ProbeService { _ in }], database: nil)
    var rig = ProbeRig(group: group)
    let client = GRPCHealthV1.HealthClient(try rig.serve([health]))
    let error = try await refusal {
      try await client.check(.init(service: "test.Nothing"), .init(timeout: .seconds(60)))
    }
    #expect(error.code == .notFound)
    var changes: [Status] = []
    do {
      for try await change in try await client.watch(.init(service: "test.Nothing"), .init(timeout: .seconds(60))) {
        changes.append(change.status)
        health.drain()
      }
    } catch let error as ServiceError {
      // It was open until the service stopped.
      #expect(error.code == .unavailable)
    }
    #expect(changes == [.serviceUnknown])
    await rig.end()
    await group.shutdown()
  }
}
