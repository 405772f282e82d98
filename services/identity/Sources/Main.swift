package import Postgres
internal import Primitives
internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "identity", migrations: Migrations.all, settings: { IdentityConfig(&$0) },
      build: { runtime, config in try Identity.parts(runtime, config) })
  }
}

/// The files of `Migrations/`, in order.
package enum Migrations {
  package static let all = [
    Migration("v0001_create_legal_documents", PackageResources.v0001_create_legal_documents_sql),
    Migration("v0002_create_accounts", PackageResources.v0002_create_accounts_sql),
    Migration("v0003_create_sessions", PackageResources.v0003_create_sessions_sql),
    Migration("v0004_create_activity", PackageResources.v0004_create_activity_sql),
    Migration("v0005_publish_first_legal_texts", PackageResources.v0005_publish_first_legal_texts_sql),
  ]
}
