package import API
package import Primitives
internal import Sealing

/// What a person gives to register, checked.
package struct Registration: Sendable {
  package let email: String
  package let emailKey: String
  package let displayName: String
  package let timeZone: String
  package let password: Secret<String>
  package let questionID: String
  package let answer: Secret<String>
  package let termsVersion: Int32

  static let answerCharacters = 2...128

  /// Checks every field; INVALID_ARGUMENT names all that are wrong.
  package init(
    _ request: IdentityV1.RegisterRequest, termsVersion current: Int32, timeZones: Set<String>
  ) throws(ServiceError) {
    var check = FieldCheck()
    email = Normalisation.email(request.email) ?? ""
    if email.isEmpty { check.fail("email", "must be an email address") }
    emailKey = Normalisation.emailKey(email)
    displayName =
      check.value { () throws(ServiceError) in
        try Normalisation.displayName(request.displayName, field: "display_name", lengths: 1...80)
      } ?? ""

    password = Secret(Normalisation.password(request.password))
    let revealed = password.reveal()
    if let fault = PasswordRules.fault(revealed, email: email, displayName: displayName) {
      check.fail("password", fault)
    }
    if Normalisation.password(request.passwordConfirmation) != revealed {
      check.fail("password_confirmation", "must equal the password")
    }

    questionID = request.securityQuestionID
    if SecurityQuestions.question(questionID) == nil {
      check.fail("security_question_id", "must be one of the listed questions")
    }
    let answer = Normalisation.answer(request.securityAnswer)
    self.answer = Secret(answer)
    if !Registration.answerCharacters.contains(answer.count) || answer.utf8.count > PasswordRules.bytesMax {
      check.fail("security_answer", "must have 2 to 128 characters")
    }

    termsVersion = request.termsVersion
    if !request.termsAccepted { check.fail("terms_accepted", "must be accepted") }
    if request.termsVersion != current { check.fail("terms_version", "must be the current version, \(current)") }
    timeZone = request.timeZone.isEmpty ? "UTC" : request.timeZone
    if !timeZones.contains(timeZone) { check.fail("time_zone", "must be the name of an IANA time zone") }
    try check.end()
  }
}

/// Gathers what is wrong with the fields of a request, so that one answer names all of it.
struct FieldCheck {
  private var violations: [ServiceError.FieldViolation] = []

  mutating func fail(_ field: String, _ description: String) {
    violations.append(.init(field: field, description: description))
  }

  /// The value, or nil and a violation.
  mutating func value<Value>(_ read: () throws(ServiceError) -> Value) -> Value? {
    do {
      return try read()
    } catch {
      violations += error.violations
      return nil
    }
  }

  func end() throws(ServiceError) {
    if !violations.isEmpty { throw .invalid(violations) }
  }
}
