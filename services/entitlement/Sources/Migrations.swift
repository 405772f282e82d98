package import Postgres

/// The steps that make this service's schema, in order.
package enum Migrations {
  package static let all = [
    Migration("v0001_create_grants", PackageResources.v0001_create_grants_sql)
  ]
}
