internal import HTTPServer
internal import Primitives

/// Every page. GET and HEAD change nothing, whatever follows a link in a mail; each change is a POST of a form that a
/// person has submitted.
struct Site: Sendable {
  let forms: Forms
  let verification: VerificationPages
  let prompts: PromptPages
  let messages: MessagePages

  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let page: Page
    do {
      page = try await self.page(request)
    } catch let error as ServiceError {
      Log.info("page refused", ["code": .text(error.code.name), "reason": .text(error.reason)])
      page = ErrorPages.page(for: error)
    } catch {
      Log.error("page failed", ["error": .text("\(error)")])
      page = ErrorPages.page(for: .internal(cause: error))
    }
    return forms.response(page, to: request)
  }

  private func page(_ request: HTTPRequest) async throws -> Page {
    let isPost = request.method == "POST"
    if request.segments.count > 1, !Site.isToken(request.segments[1]) { throw ServiceError.notFound("page") }
    if isPost { try forms.requireGenuine(request) }
    switch (request.segments.first, request.segments.count) {
    case (nil, _) where !isPost: return LandingPages.home
    case ("style.css"?, 1) where !isPost: return .style
    case ("healthz"?, 1) where !isPost: return .text("ok")
    case ("verify"?, 2):
      return isPost ? try await verification.confirm(request) : verification.ask(request)
    case ("prompt"?, 2):
      return isPost ? try await prompts.answer(request) : try await prompts.ask(request)
    case ("message"?, 2) where !isPost: return try await messages.cover(request)
    case ("message"?, 3) where isPost && request.segments[2] == "open": return try await messages.open(request)
    case ("message"?, 3) where isPost && request.segments[2] == "acknowledge":
      return try await messages.acknowledge(request)
    // A reload or a bookmark of the page behind a form leads back to its cover.
    case ("message"?, 3) where !isPost && ["open", "acknowledge"].contains(request.segments[2]):
      return .redirect("/message/\(request.segments[1])")
    default: throw ServiceError.notFound("page")
    }
  }

  /// Whether a path segment has the form of our links: 32 bytes in base64url. Nothing else goes into a page or a call.
  private static func isToken(_ text: String) -> Bool {
    text.utf8.count == 43
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
