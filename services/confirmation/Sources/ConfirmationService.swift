internal import API
internal import Postgres
internal import Primitives
internal import RPC
internal import Sealing
internal import ServiceKit

/// Designations, attempts and the confirmation.
struct ConfirmationService: ConfirmationV1.ConfirmationService {
  let database: Database
  let requests: RequestLog
  let dataKeys: DataKeys
  let courier: Courier
  let people: People
  let signingKey: SigningKey

  private typealias Methods = ConfirmationV1.ConfirmationServiceMethods

  static let access: [MethodDescriptor: Access] = [
    Methods.designate: .owner,
    Methods.getDesignations: .owner,
    Methods.removeDesignation: .owner,
    Methods.listVerifications: .owner,
    Methods.openAttempt: .owner,
    Methods.answerChallenge: .owner,
    Methods.confirmPassing: .owner,
    Methods.cancelAttempt: .owner,
  ]

  /// The caller as a person who may act for others: with an address that is proved at this moment.
  func actor(_ context: CallContext) async throws -> Person {
    let person = try await people.person(try context.account().accountID, context)
    guard person.emailVerified else {
      throw ServiceError.precondition("EMAIL_NOT_VERIFIED", "Follow the link in the mail that was sent to you.")
    }
    return person
  }
}

/// What the other services ask.
struct DesignationService: ConfirmationV1.DesignationService {
  let database: Database

  static let access: [MethodDescriptor: Access] = [
    ConfirmationV1.DesignationServiceMethods.getDesignationState: .services(["vault", "identity"])
  ]

  func getDesignationState(
    _ request: ConfirmationV1.GetDesignationStateRequest, _ context: CallContext
  ) async throws -> ConfirmationV1.GetDesignationStateResponse {
    let account = try Fields.identifier(request.accountID, "account_id")
    let roles = try await DesignationStore.current(of: account, in: database).map(\.role)
    return ConfirmationV1.GetDesignationStateResponse(
      hasAdministrator: roles.contains(.administrator), hasBackup: roles.contains(.backup))
  }
}
