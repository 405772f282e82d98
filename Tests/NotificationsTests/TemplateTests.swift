import API
import Testing

@testable import notifications

@Suite struct TemplateTests {
  typealias Content = NotificationsV1.SendRequest.Content

  static let markup = "<b>&\"K'</b>"
  static let contents: [Content] = [
    .emailVerification(.init(link: "https://x/?a=1&b=\"2\"")),
    .acceptancePrompt(.init(senderName: markup, link: "https://x")), .roleNotice(.init(senderName: markup)),
    .roleNotice(.init(senderName: markup, backup: true, removed: true)),
    .challengeCode(.init(code: "123456", subjectName: markup)), .attemptAlert(.init(administratorName: markup)),
    .passingNotice(.init(subjectName: markup)), .messageNotice(.init(senderName: markup, link: "https://x")),
  ]

  @Test("NO-1 nothing that a person wrote becomes markup in a mail", arguments: contents)
  func escaped(_ content: Content) throws {
    let template = try #require(Template(content))
    let html = template.html(greeting: Self.markup)
    #expect(!html.contains("<b>") && !html.contains("b=\"2\""))
    #expect(html.contains("&lt;b&gt;&amp;"))
    #expect(template.text(greeting: "Anna").hasPrefix("Dear Anna,\n\n"))
  }

  @Test("NO-4 NO-5 OP-58 each kind belongs to its part of the log")
  func logTypes() throws {
    let types = try Self.contents.map { try #require(Template($0)) }.map { "\($0.kind) \($0.logType)" }
    #expect(
      types == [
        "email_verification system", "acceptance_prompt acceptance_prompt", "role_notice system", "role_notice system",
        "challenge_code system", "attempt_alert system", "passing_notice system", "message_notice delivery",
      ])
  }

  @Test("OP-42 a first word is one plain sentence before everything else, and only where it is asked for")
  func firstWord() throws {
    for firstWord in [true, false] {
      let template = try #require(
        Template(.messageNotice(.init(senderName: "Karl", link: "https://x", firstWord: firstWord))))
      #expect((template.paragraphs[0] == "We are sorry for your loss.") == firstWord)
    }
  }

  @Test("NO-1 pauses between tries double from 5 s and are never longer than an hour")
  func pauses() {
    #expect((1...5).map(SendRules.delaySeconds) == [5, 10, 20, 40, 80])
    #expect([0, 10, 11, 12, 100].map(SendRules.delaySeconds) == [5, 2560, 3600, 3600, 3600])
  }
}
