package import API
internal import Events
internal import Postgres
internal import Primitives
package import RPC
internal import Sealing
internal import ServiceKit

extension IdentityService {
  private static let mailsPerHourMax = 5

  package func resendVerification(
    _ request: IdentityV1.ResendVerificationRequest, _ context: CallContext
  ) async throws -> IdentityV1.ResendVerificationResponse {
    let caller = try context.account()
    return try await runtime.requests.once(request.requestID, request, context) { transaction in
      guard let account = try await AccountStore(transaction).lock(caller.accountID) else {
        throw ServiceError.notFound("account")
      }
      guard !account.emailVerified else {
        throw ServiceError.precondition("EMAIL_ALREADY_VERIFIED", "The email address is verified already.")
      }
      let (count, seconds) = try await VerificationStore(transaction).mailsOfLastHour(of: account.id)
      guard count < IdentityService.mailsPerHourMax else {
        throw ServiceError(
          .resourceExhausted, "Too many mails were sent; look for the last one, or try again later.",
          reason: "MAIL_LIMIT", retryAfter: .seconds(max(1, seconds.rounded(.up))))
      }
      try await mailVerification(to: account, in: transaction)
      return IdentityV1.ResendVerificationResponse()
    }
  }

  /// Voids the older link and mails a new one.
  func mailVerification(to account: Account, in transaction: Transaction) async throws {
    let token = LinkToken.random()
    try await VerificationStore(transaction).replace(for: account.id, tokenHash: token.hash)
    let link = "\(runtime.config.publicURL)/verify/\(token.text.reveal())"
    try await courier.enqueue(
      NotificationsV1.SendRequest(
        requestID: "\(Identifier())",
        addressee: NotificationsV1.Addressee(name: account.displayName, email: account.email),
        content: .emailVerification(NotificationsV1.EmailVerification(link: link))),
      in: transaction)
  }

  package func verifyEmail(
    _ request: IdentityV1.VerifyEmailRequest, _ context: CallContext
  ) async throws -> IdentityV1.VerifyEmailResponse {
    try await runtime.requests.once(request.requestID, request, context) { transaction in
      guard let token = LinkToken(request.token),
        let (accountID, displayName) = try await VerificationStore(transaction).spend(tokenHash: token.hash)
      else { throw ServiceError.notFound("verification link") }
      try await AccountStore(transaction).setEmailVerified(accountID)
      try await ActivityLog(transaction).append(.emailVerified, accountID)
      try await transaction.publish(
        IdentityV1.EmailVerified(accountID: "\(accountID)"), subject: accountID, traceparent: context.traceparent)
      return IdentityV1.VerifyEmailResponse(displayName: displayName)
    }
  }
}
