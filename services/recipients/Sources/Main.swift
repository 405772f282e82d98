internal import API
internal import Postgres
internal import Primitives
internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "recipients", migrations: Migrations.all, settings: { _ in },
      build: { runtime, _ in
        let courier = try runtime.courier()
        let service = RecipientsService(
          database: runtime.database, requests: runtime.requests, courier: courier, pageTokens: runtime.pageTokens,
          directory: IdentityV1.DirectoryServiceClient(try runtime.neighbours.channel(to: "identity")),
          publicURL: runtime.config.publicURL)
        let audience = AudienceService(database: runtime.database)
        return ServiceParts(
          services: [service, audience],
          access: RecipientsService.access.merging(AudienceService.access) { first, _ in first },
          workers: [Worker("courier") { await courier.run() }])
      })
  }
}

enum Migrations {
  static let all = [
    Migration("v0001_create_recipients", PackageResources.v0001_create_recipients_sql),
    Migration("v0002_create_groups", PackageResources.v0002_create_groups_sql),
    Migration("v0003_create_prompts", PackageResources.v0003_create_prompts_sql),
  ]
}
