internal import API
internal import Postgres
internal import Primitives
internal import RPC
internal import Sealing
internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "confirmation", migrations: Migrations.all, settings: { ConfirmationConfig(&$0) },
      build: { runtime, config in
        let courier = try runtime.courier()
        let people = People(
          directory: IdentityV1.DirectoryServiceClient(try runtime.neighbours.channel(to: "identity")),
          audience: RecipientsV1.AudienceServiceClient(try runtime.neighbours.channel(to: "recipients")))
        let service = ConfirmationService(
          database: runtime.database, requests: runtime.requests, dataKeys: runtime.dataKeys, courier: courier,
          people: people, signingKey: try SigningKey(pem: config.statementSigningKey))
        let designations = DesignationService(database: runtime.database)
        return ServiceParts(
          services: [service, designations],
          access: ConfirmationService.access.merging(DesignationService.access) { first, _ in first },
          workers: [Worker("courier") { await courier.run() }])
      })
  }
}

/// `STATEMENT_SIGNING_KEY`: the Ed25519 private key (PKCS 8, PEM) that signs confirmation statements.
struct ConfirmationConfig: Sendable {
  let statementSigningKey: Secret<String>

  init(_ configuration: inout Configuration) {
    statementSigningKey = configuration.secret("STATEMENT_SIGNING_KEY")
  }
}

enum Migrations {
  static let all = [
    Migration("v0001_create_designations", PackageResources.v0001_create_designations_sql),
    Migration("v0002_create_attempts", PackageResources.v0002_create_attempts_sql),
    Migration("v0003_create_confirmations", PackageResources.v0003_create_confirmations_sql),
  ]
}
