internal import API
internal import HTTPServer
internal import Primitives
internal import RPC

/// Confirms an address (GW-37).
struct VerificationPages: Sendable {
  let identity: IdentityV1.IdentityServiceClient

  func ask(_ request: HTTPRequest) -> Page {
    .html(
      "Confirm your address",
      Page.paragraph("One step is left: confirm that this address is yours.")
        + Forms.form(action: "/verify/\(request.segments[1])", button: "Confirm my address"))
  }

  func confirm(_ request: HTTPRequest) async throws -> Page {
    let response = try await identity.verifyEmail(
      .init(requestID: try Forms.requestID(request), token: request.segments[1]), CallOptions(timeout: .seconds(10)))
    return .html(
      "Thank you, \(response.displayName)", Page.paragraph("Your address is confirmed. You can go on in the app."))
  }
}
