// Every type of the request by its proto name, and the checks that need all of them.

struct Types {
  /// Most fields of one message: what `WireValidator.fieldsMax` can tell apart.
  static let fieldsMax = 128

  private(set) var messages: [String: MessageType] = [:]
  private var swiftNames: [String: String] = [:]

  init(_ files: [File]) throws {
    for file in files {
      let namespace = Names.namespace(ofPackage: file.package)
      for message in file.messages { try add(message, in: namespace) }
      for type in file.enums { try add(type, in: namespace) }
    }
    for name in messages.keys.sorted() {
      if let cycle = cycle(from: name, along: [name]) {
        throw SchemaError(
          text: "recursive message types are not supported (a peer could nest them without limit): "
            + cycle.joined(separator: " -> "))
      }
    }
  }

  /// `VaultV1.Letter` for `afterthoughts.vault.v1.Letter`.
  func swiftName(_ fullName: String) -> String { swiftNames[fullName] ?? fullName }

  private mutating func add(_ message: MessageType, in scope: String) throws {
    try checkName(message.name, message.fullName)
    guard message.fields.count <= Types.fieldsMax else {
      throw SchemaError(text: "\(message.fullName): more than \(Types.fieldsMax) fields")
    }
    let name = "\(scope).\(message.name)"
    messages[message.fullName] = message
    swiftNames[message.fullName] = name
    for nested in message.messages { try add(nested, in: name) }
    for nested in message.enums { try add(nested, in: name) }
    let nestedNames = Set(message.messages.map(\.name) + message.enums.map(\.name))
    for oneof in message.oneofs where nestedNames.contains(Names.upperCamel(oneof.name)) {
      throw SchemaError(text: "\(message.fullName): oneof \(oneof.name) and a nested type would have the same name")
    }
  }

  private mutating func add(_ type: EnumType, in scope: String) throws {
    try checkName(type.name, type.fullName)
    swiftNames[type.fullName] = "\(scope).\(type.name)"
  }

  private func checkName(_ name: String, _ fullName: String) throws {
    if ["Type", "Protocol", "Self", "Any"].contains(name) {
      throw SchemaError(text: "\(fullName): Swift has no room for a type of this name")
    }
  }

  /// The way back to the first message of `path`, if there is one.
  private func cycle(from name: String, along path: [String]) -> [String]? {
    for field in messages[name]?.fields ?? [] {
      guard case .message(let next) = field.kind else { continue }
      if next == path[0] { return path + [next] }
      if path.contains(next) { continue }
      if let found = cycle(from: next, along: path + [next]) { return found }
    }
    return nil
  }
}
