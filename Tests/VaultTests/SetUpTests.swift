import Events
import Postgres
import Primitives
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing
import vault

@Suite struct SetUpTests {
  @Test("vault lists every migration file, in order")
  func migrations() {
    #expect(Migrations.all.map(\.name) == migrationFiles(of: "vault"))
    #expect(!Migrations.all.isEmpty)
  }

  @Test("vault reads one verifying key or several, and names the setting when there is none")
  func verifyingKeys() {
    let keys = [SigningKey.random().verifyingKey, SigningKey.random().verifyingKey]
    for count in 1...2 {
      var configuration = Configuration(
        environment: ["STATEMENT_VERIFYING_KEY": keys.prefix(count).map(\.pem).joined()])
      #expect(VaultConfig(&configuration).statementKeys == Array(keys.prefix(count)))
      #expect(configuration.faults == [])
    }
    for text in ["", "x", String(keys[0].pem.dropLast(40)), keys[0].pem + "x", SigningKey.random().pem.reveal()] {
      var configuration = Configuration(environment: ["STATEMENT_VERIFYING_KEY": text])
      #expect(VaultConfig(&configuration).statementKeys.isEmpty)
      #expect(configuration.faults.count == 1)
      #expect(configuration.faults.allSatisfy { $0.hasPrefix("STATEMENT_VERIFYING_KEY") })
    }
  }

  @Test("vault does not start with an empty file of verifying keys")
  func emptyFile() {
    var configuration = Configuration(environment: ["STATEMENT_VERIFYING_KEY_FILE": "/dev/null"])
    #expect(VaultConfig(&configuration).statementKeys.isEmpty)
    #expect(configuration.faults.count == 1)
  }

  @Test("vault cannot do without its neighbours' addresses and serves both of its services")
  func parts() async throws {
    try await VaultFixture.with { fixture in
      var configuration = Configuration(
        environment: ["STATEMENT_VERIFYING_KEY": fixture.statementKey.verifyingKey.pem])
      let parts = try VaultParts.make(fixture.runtime, VaultConfig(&configuration))
      let methods = parts.services.flatMap { type(of: $0).descriptor.methods }
      #expect(Set(methods) == Set(parts.access.keys))
      #expect(parts.subscriptions.map(\.publisher) == ["confirmation", "recipients"])
    }
  }
}
