package import EventLoop
package import Events
package import Postgres
internal import Primitives
package import RPC
package import Sealing

/// What a service is built from: made once at start, shared by its handlers and workers.
package struct ServiceRuntime: Sendable {
  /// The service's name: schema, certificate and proto package.
  package let name: String
  package let config: ServiceConfig
  package let group: EventLoopGroup
  package let database: Database
  /// For work that blocks or burns a core.
  package let pool: BlockingPool
  package let neighbours: Neighbours
  package let dataKeys: DataKeys
  package let requests: RequestLog
  package let pageTokens: PageTokenSealer
  package let metrics: Metrics

  package init(
    name: String, config: ServiceConfig, group: EventLoopGroup, database: Database, pool: BlockingPool,
    neighbours: Neighbours, dataKeys: DataKeys, requests: RequestLog, pageTokens: PageTokenSealer,
    metrics: Metrics = Metrics()
  ) {
    self.name = name
    self.config = config
    self.group = group
    self.database = database
    self.pool = pool
    self.neighbours = neighbours
    self.dataKeys = dataKeys
    self.requests = requests
    self.pageTokens = pageTokens
    self.metrics = metrics
  }

  /// Reads the log of another service into this one's database.
  package func subscription(to publisher: String) throws -> Subscription {
    Subscription(publisher: publisher, channel: try neighbours.channel(to: publisher), database: database)
  }

  /// The way to the notifications service. Its `run` must be among the workers.
  package func courier() throws -> Courier {
    Courier(
      database: database, dataKeys: dataKeys, notifications: try neighbours.channel(to: "notifications"), schema: name)
  }
}

/// What a service consists of, beside what all have (health and the event log).
package struct ServiceParts: Sendable {
  package let services: [any Service]
  /// Who may call each method of `services`.
  package let access: [MethodDescriptor: Access]
  package let subscriptions: [Subscription]
  package let workers: [Worker]
  /// Where access tokens are verified; nil means with keys from identity.
  package let tokens: AccessTokens?

  package init(
    services: [any Service], access: [MethodDescriptor: Access], subscriptions: [Subscription] = [],
    workers: [Worker] = [], tokens: AccessTokens? = nil
  ) {
    self.services = services
    self.access = access
    self.subscriptions = subscriptions
    self.workers = workers
    self.tokens = tokens
  }
}

/// Work beside the calls: runs until its task is cancelled, on an event loop.
package struct Worker: Sendable {
  package let name: String
  package let run: @Sendable () async -> Void

  package init(_ name: String, _ run: @escaping @Sendable () async -> Void) {
    self.name = name
    self.run = run
  }
}
