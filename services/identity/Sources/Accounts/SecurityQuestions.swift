package import API

/// The questions a person can choose from. An id is stored with each account, so a row is never taken away or given
/// another meaning.
package enum SecurityQuestions {
  package static let all: [IdentityV1.SecurityQuestion] = [
    question("first_school", "What was the name of your first school?"),
    question("first_pet", "What was the name of your first pet?"),
    question("childhood_street", "On which street did you live as a child?"),
    question("childhood_friend", "What was the first name of your best friend in childhood?"),
    question("first_job", "In which town did you have your first job?"),
    question("first_concert", "Whose was the first concert that you went to?"),
    question("favourite_teacher", "What was the last name of your favourite teacher?"),
    question("grandmother_birthplace", "In which town was your mother's mother born?"),
    question("parents_met", "In which town did your parents meet?"),
    question("childhood_book", "Which book did you love most as a child?"),
  ]

  /// nil for an unknown id.
  package static func question(_ id: String) -> IdentityV1.SecurityQuestion? { all.first { $0.id == id } }

  private static func question(_ id: String, _ text: String) -> IdentityV1.SecurityQuestion {
    IdentityV1.SecurityQuestion(id: id, text: text)
  }
}
