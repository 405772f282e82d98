internal import API
internal import HTTPServer
internal import Primitives
internal import RPC

/// Asks a recipient whether they want to receive messages (GW-36).
struct PromptPages: Sendable {
  let recipients: RecipientsV1.RecipientsServiceClient

  func ask(_ request: HTTPRequest) async throws -> Page {
    let token = request.segments[1]
    let prompt = try await recipients.getPrompt(.init(token: token), CallOptions(timeout: .seconds(10)))
    return .html(
      "\(prompt.senderName) has thought of you",
      Page.paragraph("Dear \(prompt.recipientName),")
        + Page.paragraph(
          "\(prompt.senderName) prepares messages that are delivered only after their passing, and would like you to "
            + "receive some of them. If you accept, you will get a mail with a link when that day comes. If you decline, "
            + "you will not be written to.")
        + Page.paragraph(PromptPages.state(prompt.acceptance)) + PromptPages.choices(token)
        + Page.paragraph("You need no account for this. If you like, you can create one of your own.")
        + "<p><a href=\"/\">Create an account</a></p>\n")
  }

  func answer(_ request: HTTPRequest) async throws -> Page {
    let token = request.segments[1]
    let answer: RecipientsV1.Acceptance
    switch request.form["answer"] {
    case "accept": answer = .accepted
    case "decline": answer = .declined
    default: throw ServiceError.invalid("answer", "must be accept or decline")
    }
    let response = try await recipients.answerPrompt(
      .init(requestID: try Forms.requestID(request), token: token, answer: answer), CallOptions(timeout: .seconds(10)))
    let accepted = response.acceptance == .accepted
    return .html(
      accepted ? "You have accepted" : "You have declined",
      Page.paragraph(
        accepted
          ? "\(response.senderName) can see that you have accepted. There is nothing else to do."
          : "\(response.senderName) can see that you have declined. You will not be written to.")
        + Page.paragraph("You can change your answer with the same link.") + PromptPages.choices(token))
  }

  private static func choices(_ token: String) -> String {
    Forms.form(action: "/prompt/\(token)", button: "Accept", fields: [("answer", "accept")])
      + Forms.form(action: "/prompt/\(token)", button: "Decline", quiet: true, fields: [("answer", "decline")])
  }

  private static func state(_ acceptance: RecipientsV1.Acceptance) -> String {
    switch acceptance {
    case .accepted: "You have accepted; you can change your answer."
    case .declined: "You have declined; you can change your answer."
    default: "You have not answered yet."
    }
  }
}
