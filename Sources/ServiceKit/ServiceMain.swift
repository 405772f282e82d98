internal import API
internal import EventLoop
internal import Events
internal import Glibc
package import Postgres
package import Primitives
internal import RPC
internal import Sealing

/// The command line of a service: `serve`, `migrate`, `check`.
package enum ServiceMain {
  /// What every service's schema begins with.
  package static let kitMigrations = [
    Migration("k0001_create_events", PackageResources.k0001_create_events_sql),
    Migration("k0002_create_requests", PackageResources.k0002_create_requests_sql),
  ]

  /// Runs the command and ends the process: 0 when all went well, 1 for a fault, 2 for a wrong command line.
  ///
  /// - `settings` decodes the service's own settings; faults are gathered in the configuration.
  /// - `build` puts the service together.
  package static func run<Settings: Sendable>(
    name: String, migrations: [Migration], settings: @Sendable (inout Configuration) -> Settings,
    build: @Sendable (ServiceRuntime, Settings) async throws -> ServiceParts
  ) async -> Never {
    ProcessSignals.takeOver()
    var configuration = Configuration.process()
    Log.configure(service: name, level: logLevel(&configuration))
    do {
      switch CommandLine.arguments.dropFirst().first {
      case "migrate" where CommandLine.arguments.count == 2:
        try await migrate(name, kitMigrations + migrations, &configuration)
      case "serve" where CommandLine.arguments.count == 2:
        let (config, own) = try decode(&configuration, settings)
        try await serve(name, config) { try await build($0, own) }
      case "check" where CommandLine.arguments.count == 2:
        let (config, _) = try decode(&configuration, settings)
        try await check(name, kitMigrations + migrations, config)
      default:
        print("usage: \(name) serve | migrate | check")
        exit(2)
      }
    } catch {
      Log.error("stopped", ["error": .text("\(error)")])
      exit(1)
    }
    exit(0)
  }

  package static func logLevel(_ configuration: inout Configuration) -> Log.Level {
    switch configuration.optional("LOG_LEVEL") {
    case "debug": .debug
    case "warning": .warning
    case "error": .error
    default: .info
    }
  }

  private static func decode<Settings>(
    _ configuration: inout Configuration, _ settings: (inout Configuration) -> Settings
  ) throws -> (ServiceConfig, Settings) {
    let config = ServiceConfig(&configuration)
    let own = settings(&configuration)
    guard let config, configuration.faults.isEmpty else {
      throw ConfigurationFault(text: configuration.faults.joined(separator: "; "))
    }
    return (config, own)
  }

  private static func migrate(
    _ name: String, _ migrations: [Migration], _ configuration: inout Configuration
  ) async throws {
    let url = configuration.secret("MIGRATE_DATABASE_URL")
    guard configuration.faults.isEmpty else {
      throw ConfigurationFault(text: configuration.faults.joined(separator: "; "))
    }
    let applied = try await Migrator(url: url, schema: name).migrate(migrations)
    for migration in applied { print("applied \(migration)") }
    if applied.isEmpty { print("nothing to apply") }
  }

  private static func check(_ name: String, _ migrations: [Migration], _ config: ServiceConfig) async throws {
    let group = EventLoopGroup(count: 1)
    let pending = try await Migrator(url: config.databaseURL, schema: name).check(migrations)
    _ = try Neighbours(config.transport, group: group)
    await group.shutdown()
    guard pending.isEmpty else {
      throw ConfigurationFault(text: "not migrated: \(pending.joined(separator: ", ")); run `\(name) migrate`")
    }
    print("settings, database and certificates are in order")
  }

  private static func serve(
    _ name: String, _ config: ServiceConfig, _ build: (ServiceRuntime) async throws -> ServiceParts
  ) async throws {
    let group = EventLoopGroup(count: config.transport.loops)
    let database = Database(
      url: config.databaseURL, group: group, configuration: DatabaseConfiguration(schema: name))
    let dataKeys = DataKeys(keys: config.keys)
    let metrics = Metrics()
    ProcessMetrics.add(to: metrics, group: group)
    DatabaseMetrics.add(to: metrics, database: database)
    let runtime = ServiceRuntime(
      name: name, config: config, group: group, database: database,
      pool: BlockingPool(name: name, threads: 2, queueMax: 32),
      neighbours: try Neighbours(config.transport, group: group, metrics: metrics), dataKeys: dataKeys,
      requests: RequestLog(database: database, dataKeys: dataKeys),
      pageTokens: try PageTokenSealer(key: config.pageTokenKey), metrics: metrics)
    let parts = try await build(runtime)
    let health = HealthService(services: parts.services, database: database)
    let eventLog = EventLog(database: database, schema: name)
    let services = parts.services + [eventLog, health]
    var access = parts.access
    access[EventsV1.EventServiceMethods.subscribe] = .anyService
    access[GRPCHealthV1.HealthMethods.check] = .anyone
    access[GRPCHealthV1.HealthMethods.watch] = .anyone
    let tokens = try parts.tokens ?? AccessTokens(identity: runtime.neighbours.channel(to: "identity"))
    let gate = try Gate(services: services, access: access, tokens: tokens)

    var configuration = try serverConfiguration(config, gate, CallMetrics(.server, metrics))
    let faults = ConnectionFaults(metrics)
    configuration.onConnectionFault = { faults.count($0) }
    let server = Server(configuration: configuration, services: services, group: group)
    let admin = try config.transport.adminListen.map { address in
      try AdminServer(address: address, loop: group.next(), metrics: metrics) { await health.isReady() }
    }
    try server.start()
    Log.info("serving", ["port": .number(Int64(server.port)), "admin_port": .number(Int64(admin?.port ?? 0))])
    let certificates = CertificateWatch.start(
      config.transport, contexts: [configuration.tls, runtime.neighbours.tls], group: group)
    let work = start(parts, runtime) + [certificates].compactMap { $0 }
    await ProcessSignals.waitForStop()
    Log.info("stopping")
    health.drain()
    eventLog.close()
    for task in work { task.cancel() }
    await server.shutdown(grace: .seconds(10))
    for task in work { await task.value }
    await admin?.shutdown()
    await database.close()
    Log.info("stopped")
  }

  private static func serverConfiguration(
    _ config: ServiceConfig, _ gate: Gate, _ calls: CallMetrics
  ) throws -> ServerConfiguration {
    var configuration = ServerConfiguration(address: config.listen)
    if let paths = config.transport.tls {
      configuration.tls = try TLSContext.server(
        certificatePath: paths.certificate, keyPath: paths.key, caPath: paths.authority)
    }
    configuration.admit = { try gate.admit(&$0) }
    configuration.authenticate = { try await gate.authenticate(&$0) }
    configuration.onCallEnd = { context, error, duration, bytesIn, bytesOut in
      calls.record(context.method, error, duration)
      CallLog.write(context, error, duration, bytesIn, bytesOut)
    }
    configuration.onStrayRequest = { calls.recordStray($0) }
    return configuration
  }

  private static func start(_ parts: ServiceParts, _ runtime: ServiceRuntime) -> [Task<Void, Never>] {
    let upkeep = Worker("upkeep") { await Upkeep.run(runtime) }
    let subscriptions = parts.subscriptions.map { subscription in
      Worker("subscription to \(subscription.publisher)") { await subscription.run() }
    }
    return (parts.workers + subscriptions + [upkeep]).map { worker in
      Task(executorPreference: runtime.group.next()) { await worker.run() }
    }
  }
}
