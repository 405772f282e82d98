internal import API
internal import Primitives

/// What each kind of notification says.
struct Template: Sendable, Equatable {
  /// The kind, as the log names it.
  let kind: String
  /// Which part of the log it belongs to (OP-58).
  let logType: String
  let subject: String
  /// Paragraphs in plain text.
  let paragraphs: [String]
  /// The one thing to follow, if any.
  let link: (label: String, url: String)?
  /// What the account's owner is told inside the app, if anything.
  let notice: (type: String, description: String)?

  static func == (left: Template, right: Template) -> Bool {
    left.kind == right.kind && left.subject == right.subject && left.paragraphs == right.paragraphs
      && left.link?.url == right.link?.url && left.notice?.description == right.notice?.description
  }

  /// The plain-text body.
  func text(greeting name: String) -> String {
    var parts = ["Dear \(name),"] + paragraphs
    if let link { parts.append("\(link.label):\n\(link.url)") }
    parts.append("Afterthoughts")
    return parts.joined(separator: "\n\n") + "\n"
  }

  /// The same as HTML, with everything escaped.
  func html(greeting name: String) -> String {
    var body = "<p>Dear \(HTMLText.escape(name)),</p>\n"
    for paragraph in paragraphs { body += "<p>\(HTMLText.escape(paragraph))</p>\n" }
    if let link { body += "<p><a href=\"\(HTMLText.escape(link.url))\">\(HTMLText.escape(link.label))</a></p>\n" }
    return """
      <!DOCTYPE html>
      <html lang="en"><head><meta charset="utf-8"><title>\(HTMLText.escape(subject))</title></head>
      <body style="font-family: Georgia, serif; max-width: 36em; line-height: 1.5">
      \(body)<p>Afterthoughts</p>
      </body></html>

      """
  }
}

extension Template {
  /// nil when the request holds no content.
  init?(_ content: NotificationsV1.SendRequest.Content?) {
    switch content {
    case .emailVerification(let content): self = .emailVerification(content)
    case .acceptancePrompt(let content): self = .acceptancePrompt(content)
    case .roleNotice(let content): self = .roleNotice(content)
    case .challengeCode(let content): self = .challengeCode(content)
    case .attemptAlert(let content): self = .attemptAlert(content)
    case .passingNotice(let content): self = .passingNotice(content)
    case .messageNotice(let content): self = .messageNotice(content)
    case nil: return nil
    }
  }

  private static func emailVerification(_ content: NotificationsV1.EmailVerification) -> Template {
    Template(
      kind: "email_verification", logType: "system", subject: "Please confirm your address",
      paragraphs: [
        "Welcome to Afterthoughts. Please confirm that this address is yours; the link works once, for 24 hours.",
        "If you did not register, do nothing: the address stays unconfirmed.",
      ],
      link: ("Confirm your address", content.link), notice: nil)
  }

  private static func acceptancePrompt(_ content: NotificationsV1.AcceptancePrompt) -> Template {
    Template(
      kind: "acceptance_prompt", logType: "acceptance_prompt",
      subject: "\(content.senderName) would like you to receive messages one day",
      paragraphs: [
        "\(content.senderName) uses Afterthoughts to prepare messages for the people who matter, to be delivered after "
          + "their passing, and has named you as someone who should receive them.",
        "You can accept or decline; you need no account. You can change your answer later with the same link.",
      ],
      link: ("Answer \(content.senderName)", content.link), notice: nil)
  }

  private static func roleNotice(_ content: NotificationsV1.RoleNotice) -> Template {
    let role = content.backup ? "backup administrator" : "administrator"
    if content.removed {
      return Template(
        kind: "role_notice", logType: "system", subject: "You are no longer \(content.senderName)'s \(role)",
        paragraphs: ["\(content.senderName) has ended your role as \(role). There is nothing for you to do."],
        link: nil,
        notice: ("administrator_role", "Your role as \(role) of \(content.senderName) has ended."))
    }
    return Template(
      kind: "role_notice", logType: "system", subject: "\(content.senderName) has named you as \(role)",
      paragraphs: [
        "\(content.senderName) trusts you with a task: to confirm their passing when the time has come, so that the "
          + "messages they prepared reach the people they are for.",
        "To act you need an Afterthoughts account with this address. There is nothing else to do now.",
      ],
      link: nil, notice: ("administrator_role", "\(content.senderName) has named you as \(role)."))
  }

  private static func challengeCode(_ content: NotificationsV1.ChallengeCode) -> Template {
    Template(
      kind: "challenge_code", logType: "system", subject: "Your confirmation code",
      paragraphs: [
        "You have begun to confirm the passing of \(content.subjectName). Your code is \(content.code); it is valid "
          + "for 10 minutes.",
        "If it was not you, do not pass the code on, and change your password.",
      ],
      link: nil, notice: nil)
  }

  private static func attemptAlert(_ content: NotificationsV1.AttemptAlert) -> Template {
    Template(
      kind: "attempt_alert", logType: "system", subject: "Someone has begun to confirm your passing",
      paragraphs: [
        "\(content.administratorName), your administrator, has begun to confirm your passing in Afterthoughts.",
        "If you read this and all is well, sign in and change your administrator now.",
      ],
      link: nil,
      notice: ("attempt_opened", "\(content.administratorName) has begun to confirm your passing."))
  }

  private static func passingNotice(_ content: NotificationsV1.PassingNotice) -> Template {
    Template(
      kind: "passing_notice", logType: "system", subject: "The passing of \(content.subjectName) has been confirmed",
      paragraphs: [
        "The passing of \(content.subjectName) has been confirmed in Afterthoughts. The messages they prepared are now "
          + "being delivered, each on its day.",
        "This cannot be undone.",
      ],
      link: nil, notice: nil)
  }

  private static func messageNotice(_ content: NotificationsV1.MessageNotice) -> Template {
    var paragraphs = [
      "\(content.senderName) prepared a message for you, to be delivered now. You need no account to read it.",
      "The link is meant for you alone; it stays open for a year.",
    ]
    if content.firstWord { paragraphs.insert("We are sorry for your loss.", at: 0) }
    return Template(
      kind: "message_notice", logType: "delivery", subject: "A message from \(content.senderName)",
      paragraphs: paragraphs, link: ("Read the message", content.link),
      notice: ("message_received", "A message from \(content.senderName) has come for you."))
  }
}
