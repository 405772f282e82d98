// How proto names become Swift and C names.

enum Names {
  /// `afterthoughts.vault.v1` becomes `VaultV1`, `google.protobuf` becomes `GoogleProtobuf`.
  static func namespace(ofPackage package: String) -> String {
    var parts = package.split(separator: ".").map(String.init)
    if parts.count > 1, parts[0] == "afterthoughts" { parts.removeFirst() }
    return parts.map { acronyms[$0] ?? upperCamel($0) }.joined()
  }

  private static let acronyms = ["grpc": "GRPC", "rpc": "RPC"]

  /// `recipient_id` becomes `recipientID`.
  static func property(_ field: String) -> String {
    var name = lowerCamel(field)
    if field.hasSuffix("_id") { name = name.dropLast(2) + "ID" }
    if field.hasSuffix("_ids") { name = name.dropLast(3) + "IDs" }
    return name
  }

  /// `SaveToVault` becomes `saveToVault`, `URLFor` becomes `urlFor`.
  static func function(_ method: String) -> String {
    let characters = Array(method)
    var result = ""
    for (index, character) in characters.enumerated() {
      let isLeading = characters[...index].allSatisfy(\.isUppercase)
      let isBeforeWord = index > 0 && index + 1 < characters.count && characters[index + 1].isLowercase
      result += isLeading && !isBeforeWord ? character.lowercased() : String(character)
    }
    return result
  }

  /// `MESSAGE_KIND_LETTER` of `MessageKind` becomes `letter`.
  static func enumCase(_ value: String, of type: String) -> String {
    let prefix = upperSnake(type) + "_"
    let rest = value.hasPrefix(prefix) ? String(value.dropFirst(prefix.count)) : value
    let name = lowerCamel(rest.lowercased())
    return name.first?.isNumber == true ? "_" + name : name
  }

  static func upperCamel(_ snake: String) -> String {
    snake.split(separator: "_").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }

  static func lowerCamel(_ snake: String) -> String {
    let name = upperCamel(snake)
    return name.prefix(1).lowercased() + name.dropFirst()
  }

  static func upperSnake(_ camel: String) -> String { cLower(camel).uppercased() }

  /// A name where it is declared, in backticks if it is a keyword.
  static func escaped(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

  /// A property where the generated functions read or set it, told apart from a local of theirs.
  static func referenced(_ name: String) -> String { locals.contains(name) ? "self.\(name)" : escaped(name) }

  private static let locals: Set = ["c", "size", "writer"]

  // MARK: protoc-c

  /// `a.b.MyMessage` becomes `A__B__MyMessage`.
  static func cType(_ fullName: String) -> String {
    fullName.split(separator: ".").map { upperCamel(String($0)) }.joined(separator: "__")
  }

  /// `a.b.MyMessage` becomes `a__b__my_message`.
  static func cFunction(_ fullName: String) -> String {
    fullName.split(separator: ".").map { cLower(String($0)) }.joined(separator: "__")
  }

  /// A struct member as Swift spells it after a dot.
  static func cMember(_ field: String) -> String {
    let name = field.lowercased()
    return cKeywords.contains(name) ? name + "_" : name
  }

  private static func cLower(_ camel: String) -> String {
    var result = ""
    var wasUpper = true
    for character in camel {
      if character.isUppercase, !wasUpper { result += "_" }
      result += character.lowercased()
      wasUpper = character.isUppercase
    }
    return result
  }

  private static let keywords: Set<String> = words(
    """
    as associatedtype break case catch class continue default defer deinit do else enum extension fallthrough false
    fileprivate for func guard if import in init inout internal is let nil operator precedencegroup private protocol
    public repeat rethrows return self static struct subscript super switch throw throws true try typealias var where
    while
    """)

  /// protoc-c appends an underscore to these.
  private static let cKeywords: Set<String> = words(
    """
    and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast continue default delete
    do double dynamic_cast else enum explicit extern false float for friend goto if inline int long mutable namespace
    new not not_eq operator or or_eq private protected public register reinterpret_cast return short signed sizeof
    static static_cast struct switch template this throw true try typedef typeid typename union unsigned using virtual
    void volatile wchar_t while xor xor_eq
    """)

  private static func words(_ text: String) -> Set<String> {
    Set(text.split(whereSeparator: \.isWhitespace).map(String.init))
  }
}
