import API
import EventLoop
import HTTPServer
import Primitives
import RPC
import Sealing
import ServiceKit
import Synchronization

@testable import gateway

/// The site on top of tiny services that remember what they were asked.
struct GatewayFixture: Sendable {
  static let publicURL = "https://afterthoughts.example"

  let backend: Backend
  let site: Site
  let token = LinkToken.random().text.reveal()

  static func with(
    publicURL: String = publicURL, services areThere: Bool = true, _ body: (GatewayFixture) async throws -> Void
  ) async throws {
    let group = EventLoopGroup(count: 1)
    let backend = Backend()
    let server = Server(
      configuration: ServerConfiguration(address: SocketAddress("127.0.0.1:0")!),
      services: [Identity(backend: backend), Recipients(backend: backend), Deliveries(backend: backend)], group: group)
    try server.start()
    let channel = Channel(target: areThere ? "127.0.0.1:\(server.port)" : "127.0.0.1:1", group: group)
    let site = Site(
      forms: Forms(publicURL: publicURL), verification: VerificationPages(identity: .init(channel)),
      prompts: PromptPages(recipients: .init(channel)),
      messages: MessagePages(delivery: .init(channel), pool: BlockingPool(name: "pages", threads: 1, queueMax: 8)))
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(GatewayFixture(backend: backend, site: site)))
    } catch {
      result = .failure(error)
    }
    await channel.shutdown()
    await server.shutdown(grace: .zero)
    await group.shutdown()
    try result.get()
  }

  // MARK: Requests

  func get(_ path: String, cookies: [String: String] = [:]) async -> HTTPResponse {
    await site.answer(request("GET", path, cookies: cookies))
  }

  func request(
    _ method: String, _ path: String, cookies: [String: String] = [:], form: [String: String] = [:],
    headers: [String: String] = [:]
  ) -> HTTPRequest {
    HTTPRequest(
      method: method, rawPath: path, path: path, segments: path.split(separator: "/").map(String.init),
      headers: headers, form: form, cookies: cookies)
  }

  /// What a browser sends when a person presses the button of the page's form number `index`.
  func submission(_ page: String, index: Int = 0) async throws -> HTTPRequest {
    let response = await get(page)
    let forms = response.text.forms
    guard index < forms.count, let cookie = response.cookie else { throw ServiceError.notFound("form") }
    return request(
      "POST", forms[index].action, cookies: [cookie.name: cookie.value], form: forms[index].fields,
      headers: ["sec-fetch-site": "same-origin", "origin": "null"])
  }

  /// The pages behind links.
  var pages: [String] { ["/verify/\(token)", "/prompt/\(token)", "/message/\(token)"] }
}

/// What the services behind the site answer and were asked.
final class Backend: Sendable {
  struct State: Sendable {
    var senderName = "Karl"
    var title = "For you"
    var body = "Dear **you**"
    var type = DeliveryV1.DeliveredType.letter
    var failure: ServiceError?
    /// Effectful calls, as `method request_id`.
    var effects: [String] = []
    var looks = 0
  }

  private let stored = Mutex(State())

  var state: State { stored.withLock { $0 } }

  func set(_ change: (inout State) -> Void) { stored.withLock { change(&$0) } }

  func effect(_ text: String) throws -> State {
    let state = stored.withLock { state in
      state.effects.append(text)
      return state
    }
    if let failure = state.failure { throw failure }
    return state
  }

  func look() throws -> State {
    let state = stored.withLock { state in
      state.looks += 1
      return state
    }
    if let failure = state.failure { throw failure }
    return state
  }
}

private struct Identity: Service {
  static let verify = IdentityV1.IdentityServiceMethods.verifyEmail
  static let descriptor = ServiceDescriptor(name: verify.service, methods: [verify])
  let backend: Backend

  var handlers: [MethodHandler] {
    [
      .unary(Self.verify) { (request: IdentityV1.VerifyEmailRequest, _) in
        let state = try backend.effect("verify \(request.requestID)")
        return IdentityV1.VerifyEmailResponse(displayName: state.senderName)
      }
    ]
  }
}

private struct Recipients: Service {
  typealias Methods = RecipientsV1.RecipientsServiceMethods
  static let descriptor = ServiceDescriptor(
    name: Methods.getPrompt.service, methods: [Methods.getPrompt, Methods.answerPrompt])
  let backend: Backend

  var handlers: [MethodHandler] {
    [
      .unary(Methods.getPrompt) { (_: RecipientsV1.GetPromptRequest, _) in
        RecipientsV1.GetPromptResponse(senderName: try backend.look().senderName, recipientName: "Anna")
      },
      .unary(Methods.answerPrompt) { (request: RecipientsV1.AnswerPromptRequest, _) in
        let state = try backend.effect("answer \(request.answer == .accepted) \(request.requestID)")
        return RecipientsV1.AnswerPromptResponse(senderName: state.senderName, acceptance: request.answer)
      },
    ]
  }
}

private struct Deliveries: Service {
  typealias Methods = DeliveryV1.DeliveryServiceMethods
  static let descriptor = ServiceDescriptor(
    name: Methods.getLink.service, methods: [Methods.getLink, Methods.openLink, Methods.acknowledge])
  let backend: Backend

  var handlers: [MethodHandler] {
    [
      .unary(Methods.getLink) { (_: DeliveryV1.GetLinkRequest, _) in
        let state = try backend.look()
        return DeliveryV1.GetLinkResponse(
          senderName: state.senderName, recipientName: "Anna", type: state.type, deliverTime: .init(seconds: 0))
      },
      .unary(Methods.openLink) { (_: DeliveryV1.OpenLinkRequest, _) in
        let state = try backend.effect("open")
        return DeliveryV1.OpenLinkResponse(
          senderName: state.senderName, title: state.title, type: state.type, body: state.body,
          deliverTime: .init(seconds: 0),
          acknowledgeTime: state.effects.contains("acknowledge") ? .init(seconds: 86_400) : nil)
      },
      .unary(Methods.acknowledge) { (_: DeliveryV1.AcknowledgeRequest, _) in
        _ = try backend.effect("acknowledge")
        return DeliveryV1.AcknowledgeResponse(acknowledgeTime: .init(seconds: 86_400))
      },
    ]
  }
}

extension HTTPResponse {
  var text: String { String(decoding: body, as: UTF8.self) }

  func header(_ name: String) -> String? { headers.first { $0.name.lowercased() == name.lowercased() }?.value }

  /// The cookie that the response sets.
  var cookie: (name: String, value: String)? {
    guard let pair = header("Set-Cookie")?.split(separator: ";").first?.split(separator: "=", maxSplits: 1),
      pair.count == 2
    else { return nil }
    return (String(pair[0]), String(pair[1]))
  }
}

extension String {
  /// The forms of a page: where they go and their hidden fields.
  var forms: [(action: String, fields: [String: String])] {
    pieces(between: "<form ", and: "</form>").map { form in
      var fields: [String: String] = [:]
      for input in form.pieces(between: "<input ", and: ">") {
        guard let name = input.pieces(between: "name=\"", and: "\"").first,
          let value = input.pieces(between: "value=\"", and: "\"").first
        else { continue }
        fields[name] = value
      }
      return (form.pieces(between: "action=\"", and: "\"").first ?? "", fields)
    }
  }

  func pieces(between start: String, and end: String) -> [String] {
    split(separator: start, omittingEmptySubsequences: false).dropFirst().map { piece in
      String(piece.split(separator: end, maxSplits: 1, omittingEmptySubsequences: false)[0])
    }
  }
}
