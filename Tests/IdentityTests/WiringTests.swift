import API
import EventLoop
import Events
import Postgres
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing
import identity

struct WiringTests {
  @Test("ID-4 every migration file is listed, in order")
  func migrations() {
    #expect(Migrations.all.map(\.name) == migrationFiles(of: "identity"))
  }

  @Test("ID-8 every method has a row in the access table, and every row a method")
  func accessTable() {
    let methods = Set(Methods.descriptor.methods + DirectoryMethods.descriptor.methods)
    #expect(Set(Identity.access.keys) == methods)
  }

  @Test("ID-8 the account and what changes it are open to its owner, the directory to services only")
  func access() {
    for method in [Methods.getAccount, Methods.resendVerification, Methods.logOut] {
      #expect(Identity.access[method] == .owner)
    }
    #expect(Identity.access[DirectoryMethods.getSigningKeys] == .anyService)
    #expect(Identity.access[DirectoryMethods.batchGetAccounts] == .anyService)
    #expect(Identity.access[DirectoryMethods.findAccountsByEmail] == .services(["confirmation", "notifications"]))
    for method in [DirectoryMethods.getSecurityQuestion, DirectoryMethods.checkSecurityAnswer] {
      #expect(Identity.access[method] == .services(["confirmation"]))
    }
  }

  @Test("ID-11 the parts of the service fit together")
  func parts() async throws {
    try await TestRuntime.with(name: "identity", migrations: Migrations.all) { runtime in
      let parts = try Identity.parts(runtime, IdentityConfig(signingKey: .random()))
      #expect(parts.services.count == 2 && parts.subscriptions.map(\.publisher) == ["confirmation"])
      #expect(parts.tokens != nil)
    }
  }
}
