package import API
internal import Events
package import Postgres
internal import Primitives
package import RPC
internal import Synchronization

/// grpc.health.v1: the empty name stands for the process, a service's name for its readiness, which includes its
/// database.
package final class HealthService: GRPCHealthV1.Health {
  private let names: Set<String>
  private let database: Database?
  private let draining = Mutex(false)
  private let changed = Signal()

  package init(services: [any Service], database: Database?) {
    names = Set(services.map { type(of: $0).descriptor.name })
    self.database = database
  }

  /// From now on everything is NOT_SERVING.
  package func drain() {
    draining.withLock { $0 = true }
    changed.ring()
  }

  package func check(
    _ request: GRPCHealthV1.HealthCheckRequest, _ context: CallContext
  ) async throws -> GRPCHealthV1.HealthCheckResponse {
    guard let status = await status(request.service) else { throw ServiceError.notFound("service") }
    return GRPCHealthV1.HealthCheckResponse(status: status)
  }

  package func watch(
    _ request: GRPCHealthV1.HealthCheckRequest, _ responses: ResponseWriter<GRPCHealthV1.HealthCheckResponse>,
    _ context: CallContext
  ) async throws {
    var last: GRPCHealthV1.HealthCheckResponse.ServingStatus?
    while !Task.isCancelled {
      let seen = changed.count
      let now = await status(request.service) ?? .serviceUnknown
      if now != last {
        try await responses.write(GRPCHealthV1.HealthCheckResponse(status: now))
        last = now
      }
      if draining.withLock({ $0 }) { throw ServiceError.unavailable("The service is stopping.") }
      await changed.wait(after: seen, timeout: .seconds(2))
    }
    throw CancellationError()
  }

  /// Whether calls can be served: the database answers and the service is not stopping.
  package func isReady() async -> Bool {
    if draining.withLock({ $0 }) { return false }
    guard let database else { return true }
    return (try? await database.query("SELECT 1")) != nil
  }

  private func status(_ name: String) async -> GRPCHealthV1.HealthCheckResponse.ServingStatus? {
    guard name.isEmpty || names.contains(name) else { return nil }
    if name.isEmpty { return draining.withLock { $0 } ? .notServing : .serving }
    return await isReady() ? .serving : .notServing
  }
}
