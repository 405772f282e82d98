package import Postgres

/// The steps that make this service's schema, in order.
package enum Migrations {
  package static let all = [
    Migration("v0001_create_recipients", PackageResources.v0001_create_recipients_sql),
    Migration("v0002_create_groups", PackageResources.v0002_create_groups_sql),
    Migration("v0003_create_prompts", PackageResources.v0003_create_prompts_sql),
  ]
}
