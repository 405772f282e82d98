internal import API
internal import Postgres
internal import Primitives
internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "delivery", migrations: Migrations.all, settings: { _ in },
      build: { runtime, _ in
        let courier = try runtime.courier()
        let schedule = Scheduler(
          database: runtime.database,
          directory: IdentityV1.DirectoryServiceClient(try runtime.neighbours.channel(to: "identity")),
          audience: RecipientsV1.AudienceServiceClient(try runtime.neighbours.channel(to: "recipients")),
          release: VaultV1.ReleaseServiceClient(try runtime.neighbours.channel(to: "vault")))
        let dispatcher = Dispatcher(
          database: runtime.database, courier: courier, publicURL: runtime.config.publicURL, wake: schedule.scheduled)
        let service = DeliveryService(
          database: runtime.database, pageTokens: runtime.pageTokens,
          release: VaultV1.ReleaseServiceClient(try runtime.neighbours.channel(to: "vault")))
        return ServiceParts(
          services: [service], access: DeliveryService.access,
          subscriptions: try DeliveryEvents.subscriptions(runtime),
          workers: [
            Worker("scheduler") { await schedule.run() },
            Worker("dispatcher") { await dispatcher.run() },
            Worker("courier") { await courier.run() },
          ])
      })
  }
}

enum Migrations {
  static let all = [
    Migration("v0001_create_accounts", PackageResources.v0001_create_accounts_sql),
    Migration("v0002_create_deliveries", PackageResources.v0002_create_deliveries_sql),
    Migration("v0003_keep_deliveries", PackageResources.v0003_keep_deliveries_sql),
  ]
}
