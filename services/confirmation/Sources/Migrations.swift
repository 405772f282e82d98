package import Postgres

/// The steps that make this service's schema, in order.
package enum Migrations {
  package static let all = [
    Migration("v0001_create_designations", PackageResources.v0001_create_designations_sql),
    Migration("v0002_create_attempts", PackageResources.v0002_create_attempts_sql),
    Migration("v0003_create_confirmations", PackageResources.v0003_create_confirmations_sql),
  ]
}
