import Foundation
import Primitives
import Testing

struct ConfigurationTests {
  private func file(_ content: String) throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: "setting-\(UUID())").path
    try content.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  @Test("Primitives configuration keeps every fault, so that one run names all of them")
  func faults() {
    var configuration = Configuration(environment: [
      "PORT": "70000", "FLAG": "yes", "EMPTY": "", "KEY_FILE": "/none/such",
    ])
    let texts = [configuration.text("URL"), configuration.text("EMPTY"), configuration.secret("KEY").reveal()]
    let port = configuration.integer("PORT", default: 1, in: 1...65535)
    let flag = configuration.flag("FLAG", default: true)
    #expect(texts == ["", "", ""] && port == 1 && flag)
    configuration.fault("own")
    let faults = configuration.faults
    let names = faults.map { String($0.prefix { $0 != ":" }) }
    #expect(names == ["URL", "EMPTY", "KEY_FILE", "KEY", "PORT", "FLAG", "own"])
  }

  @Test("Primitives configuration reads what is set and takes defaults for the rest")
  func values() {
    var configuration = Configuration(environment: ["PORT": "65535", "A": "true", "B": "0", "NAME": "x"])
    let numbers = [
      configuration.integer("PORT", default: 1, in: 1...65535), configuration.integer("OTHER", default: 7, in: 1...9),
    ]
    let flags = [configuration.flag("A", default: false), configuration.flag("B", default: true)]
    let texts = [configuration.text("NAME", default: "y"), configuration.text("NONE", default: "y")]
    let missing = configuration.optional("NONE")
    let faults = configuration.faults
    #expect(numbers == [65535, 7] && flags == [true, false] && texts == ["x", "y"])
    #expect(missing == nil && faults.isEmpty)
  }

  @Test("Primitives configuration reads a setting from the file that X_FILE names, less one line end")
  func files() throws {
    let path = try file("hunter2\n\n")
    defer { try? FileManager.default.removeItem(atPath: path) }
    var configuration = Configuration(environment: ["KEY_FILE": path, "KEY": "ignored"])
    let key = configuration.secret("KEY").reveal()
    let faults = configuration.faults
    #expect(key == "hunter2\n" && faults.isEmpty)
  }

  @Test("Primitives configuration never quotes a value in a fault")
  func quoting() {
    var configuration = Configuration(environment: ["PORT": "hunter2", "FLAG": "hunter2"])
    _ = configuration.integer("PORT", default: 1, in: 1...2)
    _ = configuration.flag("FLAG", default: false)
    let faults = configuration.faults
    #expect(faults.count == 2 && !faults.joined().contains("hunter2"))
  }

  @Test("Primitives configuration reads files of at most 1 MiB and no directory")
  func limits() throws {
    let path = try file(String(repeating: "a", count: 1 << 20))
    let larger = try file(String(repeating: "a", count: (1 << 20) + 1))
    defer { for path in [path, larger] { try? FileManager.default.removeItem(atPath: path) } }
    #expect(Configuration.read(path: path)?.count == 1 << 20)
    #expect(Configuration.read(path: larger) == nil)
    #expect(Configuration.read(path: "/") == nil && Configuration.read(path: "/none/such") == nil)
  }
}
