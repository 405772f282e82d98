import API
import Postgres
import Primitives
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing
import confirmation

struct WiringTests {
  @Test("CO-8 every migration file is listed, in order")
  func migrations() {
    #expect(Migrations.all.map(\.name) == migrationFiles(of: "confirmation"))
  }

  @Test("CO-8 every method has its callers: a signed-in person, or the services that must know")
  func access() {
    let services = ConfirmationV1.DesignationServiceMethods.descriptor.methods
    for method in Calls.descriptor.methods { #expect(ConfirmationParts.access[method] == .owner) }
    for method in services { #expect(ConfirmationParts.access[method] == .services(["vault", "identity"])) }
    #expect(ConfirmationParts.access.count == Calls.descriptor.methods.count + services.count)
  }

  @Test("CO-8 the parts of the service fit together")
  func parts() async throws {
    try await TestRuntime.with(name: "confirmation", migrations: Migrations.all) { runtime in
      let parts = try ConfirmationParts.make(runtime, signingKey: .random())
      #expect(parts.services.count == 2 && parts.subscriptions.isEmpty && parts.workers.map(\.name) == ["courier"])
    }
  }

  @Test("CO-8 without a signed-in person every call is UNAUTHENTICATED")
  func anonymous() async throws {
    try await ConfirmationFixture.with { fixture async throws in
      let service = fixture.service
      let nobody = CallContext.anonymous(Calls.designate)
      let (id, other) = ("\(Identifier())", "\(Identifier())")
      let calls: [() async throws -> Void] = [
        { _ = try await service.designate(.init(requestID: id, administrator: .init()), nobody) },
        { _ = try await service.getDesignations(.init(), nobody) },
        { _ = try await service.removeDesignation(.init(requestID: id, role: .backup), nobody) },
        { _ = try await service.listVerifications(.init(), nobody) },
        { _ = try await service.openAttempt(.init(requestID: id, designationID: other), nobody) },
        { _ = try await service.answerChallenge(.init(requestID: id, attemptID: other), nobody) },
        { _ = try await service.confirmPassing(.init(requestID: id, attemptID: other), nobody) },
        { _ = try await service.cancelAttempt(.init(requestID: id, attemptID: other), nobody) },
      ]
      for call in calls { #expect(try await refusal(call).code == .unauthenticated) }
    }
  }
}
