private import Glibc

/// Settings from the environment. A setting named `X` may instead be given as `X_FILE`, the path of a file that holds
/// the value (one trailing newline is dropped): the way for secrets. Every fault found is kept, so that one run names
/// all of them.
package struct Configuration: ~Copyable {
  private let environment: [String: String]
  /// What is wrong, one line a fault; empty when all is well.
  package private(set) var faults: [String] = []

  package init(environment: [String: String]) {
    self.environment = environment
  }

  /// The process's own environment.
  package static func process() -> Configuration {
    var environment: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let pair = String(cString: text)
      if let split = pair.firstIndex(of: "=") {
        environment[String(pair[..<split])] = String(pair[pair.index(after: split)...])
      }
      entry += 1
    }
    return Configuration(environment: environment)
  }

  package mutating func optional(_ name: String) -> String? {
    if let path = environment[name + "_FILE"] {
      guard let bytes = Configuration.read(path: path) else {
        faults.append("\(name)_FILE: the file cannot be read")
        return nil
      }
      var text = String(decoding: bytes, as: UTF8.self)
      if text.hasSuffix("\n") { text.removeLast() }
      return text
    }
    guard let value = environment[name], !value.isEmpty else { return nil }
    return value
  }

  /// Adds a fault and returns "" when the setting is missing.
  package mutating func text(_ name: String, default value: String? = nil) -> String {
    if let found = optional(name) ?? value { return found }
    faults.append("\(name): is not set (nor \(name)_FILE)")
    return ""
  }

  package mutating func secret(_ name: String) -> Secret<String> { Secret(text(name)) }

  package mutating func integer(_ name: String, default value: Int, in range: ClosedRange<Int>) -> Int {
    guard let text = optional(name) else { return value }
    guard let number = Int(text), range.contains(number) else {
      faults.append("\(name): must be a whole number from \(range.lowerBound) to \(range.upperBound)")
      return value
    }
    return number
  }

  /// `true`, `false`, `1` or `0`.
  package mutating func flag(_ name: String, default value: Bool) -> Bool {
    switch optional(name) {
    case nil: return value
    case "true", "1": return true
    case "false", "0": return false
    default:
      faults.append("\(name): must be true or false")
      return value
    }
  }

  package mutating func fault(_ text: String) { faults.append(text) }

  /// The content of a file of at most 1 MiB; nil when it cannot be read.
  package static func read(path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      guard count >= 0 else { return nil }
      if count == 0 { return content }
      content.append(contentsOf: chunk[..<count])
      guard content.count <= 1 << 20 else { return nil }
    }
  }
}
