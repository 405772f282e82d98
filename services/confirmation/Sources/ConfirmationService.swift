package import API
internal import Postgres
internal import Primitives
package import RPC
package import Sealing
package import ServiceKit

/// Designations, attempts and the confirmation.
package struct ConfirmationService: ConfirmationV1.ConfirmationService {
  let database: Database
  let requests: RequestLog
  let dataKeys: DataKeys
  let courier: Courier
  let people: People
  let signingKey: SigningKey

  package init(_ runtime: ServiceRuntime, signingKey: SigningKey) throws {
    database = runtime.database
    requests = runtime.requests
    dataKeys = runtime.dataKeys
    courier = try runtime.courier()
    people = try People(runtime)
    self.signingKey = signingKey
  }

  /// The caller as a person who may act: with an address that is proved at this moment.
  func actor(_ context: CallContext) async throws -> Person {
    let person = try await caller(context)
    guard person.emailVerified else {
      throw ServiceError.precondition("EMAIL_NOT_VERIFIED", "Follow the link in the mail that was sent to you.")
    }
    return person
  }

  /// The caller as identity knows them now.
  func caller(_ context: CallContext) async throws -> Person {
    let account = try context.account().accountID
    guard let person = try await people.people([account], context)[account] else {
      throw ServiceError.unauthenticated()
    }
    return person
  }
}

/// What the other services ask.
package struct DesignationService: ConfirmationV1.DesignationService {
  private let database: Database

  package init(_ runtime: ServiceRuntime) {
    database = runtime.database
  }

  package func getDesignationState(
    _ request: ConfirmationV1.GetDesignationStateRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.GetDesignationStateResponse {
    let account = try Fields.identifier(request.accountID, "account_id")
    let roles = try await DesignationStore.current(of: account, in: database).map(\.role)
    return ConfirmationV1.GetDesignationStateResponse(
      hasAdministrator: roles.contains(.administrator), hasBackup: roles.contains(.backup))
  }
}
