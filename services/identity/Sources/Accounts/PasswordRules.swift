internal import Sealing

/// Which passwords are taken (OP-10).
package enum PasswordRules {
  package static let characters = 10...128
  package static let bytesMax = 512

  /// What is wrong with a password in its normalised form; nil when nothing is.
  package static func fault(_ password: String, email: String, displayName: String) -> String? {
    guard password.utf8.count <= bytesMax, characters.contains(password.count) else {
      return "must have \(characters.lowerBound) to \(characters.upperBound) characters"
    }
    let folded = Normalisation.answer(password)
    if folded == Normalisation.answer(email) { return "must not be the email address" }
    if folded == Normalisation.answer(displayName) { return "must not be the display name" }
    if Set(folded).count < 3 || common.contains(folded) { return "is too common; choose another one" }
    return nil
  }

  /// Widely used passwords of ten characters and more, case-folded.
  private static let common: Set<String> = [
    "0123456789", "0987654321", "1029384756", "1122334455", "123123123123", "1231231231", "123412341234",
    "1234554321", "12345678910", "123456789012", "1234567890", "123456789a", "1234567891", "123456789q", "1234567899",
    "1234qwerasdf", "123qweasdzxc", "1q2w3e4r5t", "1q2w3e4r5t6y", "1qaz2wsx3edc", "987654321a", "9876543210",
    "a123456789", "abc1234567", "abcd123456", "abcdefghij", "administrator", "afterthoughts", "asdfghjkl1",
    "asdfghjkl123", "basketball", "changeme123", "chocolate1", "christopher", "correct horse battery staple",
    "correcthorsebatterystaple", "football123", "iloveyou12", "iloveyou123", "letmein123", "liverpool1",
    "mypassword", "p@ssw0rd123", "passw0rd123", "password01", "password12", "password123", "password1234", "password!!",
    "passwordpassword", "princess123", "q1w2e3r4t5", "qazwsxedcrfv", "qwer123456", "qwerty12345", "qwerty123456",
    "qwertyuiop", "qwertyuiop123", "qwertyuiop[]", "sunshine123", "thepassword", "welcome123", "zaq12wsxcde3",
    "zxcvbnm123",
  ]
}
