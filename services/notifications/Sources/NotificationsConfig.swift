internal import Mail
internal import Primitives

/// Settings of the mail provider: `SMTP_URL`, `MAIL_FROM` (an address), `MAIL_FROM_NAME`, `SMTP_USER` and
/// `SMTP_PASSWORD` (both or neither), `MAIL_CONNECTIONS` (1 to 32).
struct NotificationsConfig: Sendable {
  let smtpURL: String
  let from: MailAddress
  let credentials: Mailer.Credentials?
  let mailConnections: Int

  init(_ configuration: inout Configuration) {
    smtpURL = configuration.text("SMTP_URL")
    from = MailAddress(
      configuration.text("MAIL_FROM"), displayName: configuration.text("MAIL_FROM_NAME", default: "Afterthoughts"))
    let user = configuration.optional("SMTP_USER")
    let password = configuration.optional("SMTP_PASSWORD")
    if (user == nil) != (password == nil) { configuration.fault("SMTP_USER and SMTP_PASSWORD: set both or neither") }
    credentials = user.flatMap { user in password.map { Mailer.Credentials(user: user, password: Secret($0)) } }
    mailConnections = configuration.integer("MAIL_CONNECTIONS", default: 4, in: 1...32)
  }
}
