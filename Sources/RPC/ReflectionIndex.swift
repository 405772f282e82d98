internal import Primitives

/// The proto files behind a server's services, found by file name and by symbol.
struct ReflectionIndex: Sendable {
  private struct File {
    let bytes: [UInt8]
    var imports: [String] = []
  }

  /// Full names, sorted.
  let services: [String]
  private var files: [String: File] = [:]
  private var fileOfSymbol: [String: String] = [:]

  init(_ descriptors: [ServiceDescriptor]) {
    services = descriptors.map { $0.name }.sorted()
    for descriptor in descriptors {
      guard let set = Base64.decode("\(descriptor.files)") else { continue }
      DetailReader.forEachField(set[...]) { number, field in
        if number == 1, case .bytes(let file) = field { add(file) }
      }
    }
  }

  /// The file and all that it imports, itself first; nil when there is none of that name.
  func files(named name: String) -> [[UInt8]]? {
    guard files[name] != nil else { return nil }
    var names = [name]
    var position = 0
    while position < names.count {
      names += (files[names[position]]?.imports ?? []).filter { !names.contains($0) }
      position += 1
    }
    return names.compactMap { files[$0]?.bytes }
  }

  /// The file that declares a message, an enum, a service or a method, with all that it imports.
  func files(declaring symbol: String) -> [[UInt8]]? { fileOfSymbol[symbol].flatMap { files(named: $0) } }

  // MARK: FileDescriptorProto

  private mutating func add(_ bytes: ArraySlice<UInt8>) {
    let name = Self.text(1, of: bytes)
    guard files[name] == nil else { return }
    var file = File(bytes: Array(bytes))
    let package = Self.text(2, of: bytes)
    let scope = package.isEmpty ? "" : package + "."
    DetailReader.forEachField(bytes) { number, field in
      guard case .bytes(let content) = field else { return }
      switch number {
      case 3: file.imports.append(String(decoding: content, as: UTF8.self))
      case 4: addMessage(content, scope, name)
      case 5: fileOfSymbol[scope + Self.text(1, of: content)] = name
      case 6: addService(content, scope, name)
      default: break
      }
    }
    files[name] = file
  }

  private mutating func addMessage(_ bytes: ArraySlice<UInt8>, _ scope: String, _ file: String) {
    let name = scope + Self.text(1, of: bytes)
    fileOfSymbol[name] = file
    DetailReader.forEachField(bytes) { number, field in
      guard case .bytes(let content) = field else { return }
      if number == 3 { addMessage(content, name + ".", file) }
      if number == 4 { fileOfSymbol["\(name).\(Self.text(1, of: content))"] = file }
    }
  }

  private mutating func addService(_ bytes: ArraySlice<UInt8>, _ scope: String, _ file: String) {
    let name = scope + Self.text(1, of: bytes)
    fileOfSymbol[name] = file
    DetailReader.forEachField(bytes) { number, field in
      guard number == 2, case .bytes(let content) = field else { return }
      fileOfSymbol["\(name).\(Self.text(1, of: content))"] = file
    }
  }

  private static func text(_ wanted: Int, of bytes: ArraySlice<UInt8>) -> String {
    var found = ""
    DetailReader.forEachField(bytes) { number, field in
      if number == wanted, case .bytes(let content) = field { found = String(decoding: content, as: UTF8.self) }
    }
    return found
  }
}
