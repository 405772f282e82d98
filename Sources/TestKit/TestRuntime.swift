package import EventLoop
package import Postgres
package import Primitives
package import RPC
internal import Sealing
package import ServiceKit

/// What a service is built from, for a test: a database of its own, throw-away keys, and neighbours that listen on
/// loopback ports.
package enum TestRuntime {
  /// Makes a runtime, runs `body`, and takes everything down again whatever happens.
  ///
  /// - `migrations`: the service's own; those that every service has come first.
  /// - `neighbours`: what to serve in the place of other services, by name. The others have an address where nothing
  ///   listens, so that calls to them are UNAVAILABLE.
  package static func with(
    name: String, migrations: [Migration], neighbours: [String: [any Service]] = [:],
    _ body: (ServiceRuntime) async throws -> Void
  ) async throws {
    if Places.isTaken { return try await run(name, migrations, neighbours, body) }
    await Places.databases.take()
    defer { Places.databases.giveBack() }
    try await Places.$isTaken.withValue(true) { try await run(name, migrations, neighbours, body) }
  }

  private static func run(
    _ name: String, _ migrations: [Migration], _ neighbours: [String: [any Service]],
    _ body: (ServiceRuntime) async throws -> Void
  ) async throws {
    let group = EventLoopGroup(count: 1)
    let database = try await TestDatabase.create(
      migrations: ServiceMain.kitMigrations + migrations, schema: name, group: group)
    var servers: [Server] = []
    let result: Result<Void, any Error>
    do {
      var environment = settings(database)
      for (neighbour, services) in neighbours {
        let server = Server(
          configuration: ServerConfiguration(address: loopback), services: services, group: group)
        try server.start()
        servers.append(server)
        environment["\(neighbour.uppercased())_ADDRESS"] = "127.0.0.1:\(server.port)"
      }
      let runtime = try await make(name, environment, database)
      result = .success(try await body(runtime))
    } catch {
      result = .failure(error)
    }
    for server in servers { await server.shutdown(grace: .zero) }
    try await database.drop()
    await group.shutdown()
    try result.get()
  }

  /// Any port of 127.0.0.1.
  package static let loopback = SocketAddress("127.0.0.1:0")!

  private static func settings(_ database: TestDatabase) -> [String: String] {
    var settings = [
      "ALLOW_PLAINTEXT": "true", "LISTEN": "127.0.0.1:0", "DATABASE_URL": database.url.reveal(),
      "KEY_ENCRYPTION_KEYS": "test-1 " + Base64.encode(randomBytes(32)),
      "PAGE_TOKEN_KEY": Base64.encode(randomBytes(32)), "PUBLIC_URL": "http://afterthoughts.example",
    ]
    for name in ["identity", "vault", "recipients", "confirmation", "delivery", "entitlement", "notifications"] {
      settings["\(name.uppercased())_ADDRESS"] = "127.0.0.1:1"
    }
    return settings
  }

  private static func make(
    _ name: String, _ environment: [String: String], _ database: TestDatabase
  ) async throws -> ServiceRuntime {
    var configuration = Configuration(environment: environment)
    guard let config = ServiceConfig(&configuration) else {
      throw TestSetupFault(text: configuration.faults.joined(separator: "; "))
    }
    let dataKeys = DataKeys(keys: config.keys)
    _ = try await dataKeys.serviceKey(in: database.database)
    return ServiceRuntime(
      name: name, config: config, group: database.group, database: database.database,
      pool: BlockingPool(name: name, threads: 2, queueMax: 32),
      neighbours: try Neighbours(config.transport, group: database.group), dataKeys: dataKeys,
      requests: RequestLog(database: database.database, dataKeys: dataKeys),
      pageTokens: try PageTokenSealer(key: config.pageTokenKey))
  }
}

extension CallContext {
  /// A call of a signed-in person.
  package static func owner(
    _ accountID: Identifier, _ method: MethodDescriptor, emailVerified: Bool = true
  ) -> CallContext {
    let account = AccountCaller(accountID: accountID, sessionID: Identifier(), emailVerified: emailVerified)
    return CallContext(method: method, peerAddress: TestRuntime.loopback, caller: .account(account))
  }

  /// A call of another service.
  package static func service(_ name: String, _ method: MethodDescriptor) -> CallContext {
    CallContext(method: method, peerAddress: TestRuntime.loopback, caller: .service(name))
  }

  /// A call of nobody in particular.
  package static func anonymous(_ method: MethodDescriptor) -> CallContext {
    CallContext(method: method, peerAddress: TestRuntime.loopback)
  }
}
