internal import API
internal import Primitives
internal import Sealing

/// An item of the secure folder, after every check that needs no one else.
struct CheckedItem: Sendable {
  let section: VaultV1.FolderSection
  let title: String
  let text: String
}

/// What an item of the secure folder must be.
enum FolderRules {
  static let titleCharactersMax = 200
  static let textCharactersMax = 20_000
  static let itemsMax = 500

  /// Throws INVALID_ARGUMENT that names every field that breaks a rule.
  static func check(_ request: VaultV1.SaveFolderItemRequest) throws(ServiceError) -> CheckedItem {
    var violations = Violations()
    if request.section == .unspecified || !VaultV1.FolderSection.allCases.contains(request.section) {
      violations.add("section", "must be one of the folder's sections")
    }
    let title = violations.attempt { () throws(ServiceError) in
      try Normalisation.line(request.title, field: "title", lengths: 1...titleCharactersMax)
    }
    if Texts.exceeds(request.text, characters: textCharactersMax) {
      violations.add("text", "must have at most \(textCharactersMax) characters")
    } else if Texts.holdsControls(request.text) {
      violations.add("text", "must not hold control characters")
    }
    try violations.check()
    return CheckedItem(section: request.section, title: title ?? "", text: request.text)
  }
}
