internal import API
internal import Primitives
internal import Sealing
internal import ServiceKit

/// The ways a notification goes out.
enum SendChannel: String, Sendable {
  case email
  case inApp = "in_app"

  /// The number in events.
  var number: Int32 {
    switch self {
    case .email: 1
    case .inApp: 3
    }
  }
}

/// What can be sent, how, and for how long it is tried; pure.
enum SendRules {
  /// After this long a channel gives up (OP-51).
  static let patienceSeconds = 72 * 3600.0
  /// How long one try may take before another instance takes the send over; longer than a mail's own limit, and a
  /// send is leased only when it can begin at once.
  static let leaseSeconds = 30.0
  /// What a whole conversation with the mail server may take.
  static let mailTimeout: Duration = .seconds(20)

  /// Gathers every fault of a request.
  static func check(_ request: NotificationsV1.SendRequest) throws(ServiceError) -> Template {
    var violations: [ServiceError.FieldViolation] = []
    func require(_ holds: Bool, _ field: String, _ description: String) {
      if !holds { violations.append(.init(field: field, description: description)) }
    }
    let addressee = request.addressee ?? .init()
    require(Normalisation.email(addressee.email) != nil, "addressee.email", "must be an address")
    require(isLine(addressee.name, max: 200), "addressee.name", "must be one line of 1 to 200 characters")
    if !addressee.accountID.isEmpty {
      require(Identifier(addressee.accountID) != nil, "addressee.account_id", "must be a UUID")
    }
    for (field, value) in names(request.content) {
      require(isLine(value, max: 500), field, "must be one line of 1 to 500 characters")
    }
    let template = Template(request.content)
    require(template != nil, "content", "is missing")
    guard let template, violations.isEmpty else { throw .invalid(violations) }
    return template
  }

  /// Email always; inside the app where there is something to say and the person turns out to have an account.
  static func channels(of template: Template) -> [SendChannel] {
    template.notice == nil ? [.email] : [.email, .inApp]
  }

  /// When to try again after `attempts` failures: 5 s, doubling, at most an hour.
  static func delaySeconds(after attempts: Int) -> Double { min(5 * Double(1 << min(max(attempts, 1) - 1, 12)), 3600) }

  static func binding(_ id: Identifier) -> Binding {
    Binding(table: "notifications", column: "sealed", row: id, owner: DataKeys.serviceOwner)
  }

  /// What goes into subjects, names and links: one line each.
  private static func names(_ content: NotificationsV1.SendRequest.Content?) -> [(String, String)] {
    switch content {
    case .emailVerification(let content): [("email_verification.link", content.link)]
    case .acceptancePrompt(let content):
      [("acceptance_prompt.sender_name", content.senderName), ("acceptance_prompt.link", content.link)]
    case .roleNotice(let content): [("role_notice.sender_name", content.senderName)]
    case .challengeCode(let content):
      [("challenge_code.code", content.code), ("challenge_code.subject_name", content.subjectName)]
    case .attemptAlert(let content): [("attempt_alert.administrator_name", content.administratorName)]
    case .passingNotice(let content): [("passing_notice.subject_name", content.subjectName)]
    case .messageNotice(let content):
      [("message_notice.sender_name", content.senderName), ("message_notice.link", content.link)]
    case nil: []
    }
  }

  private static func isLine(_ text: String, max: Int) -> Bool {
    !text.isEmpty && text.count <= max
      && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
  }
}
