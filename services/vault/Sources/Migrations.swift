package import Postgres

/// The steps that make this service's schema, in order.
package enum Migrations {
  package static let all = [
    Migration("v0001_create_accounts", PackageResources.v0001_create_accounts_sql),
    Migration("v0002_create_messages", PackageResources.v0002_create_messages_sql),
    Migration("v0003_create_folder_items", PackageResources.v0003_create_folder_items_sql),
    Migration("v0004_create_release_reads", PackageResources.v0004_create_release_reads_sql),
  ]
}
