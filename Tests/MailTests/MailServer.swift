import Foundation
import Testing

/// A mail that arrived, as Python's parser reads it.
struct ArrivedMail: Decodable {
  let sender: String
  let recipients: [String]
  let hello: String
  let encrypted: Bool
  /// How many connections the server had seen when it came.
  let connections: Int
  let type: String
  let headers: [String: String]
  let toName: String
  let text: String
  let html: String
  let lineMax: Int
  let isAscii: Bool
}

/// An aiosmtpd process of its own, ended with the object. Python is `AFTERTHOUGHTS_PYTHON`, else `python3`; it needs
/// the package aiosmtpd.
final class MailServer {
  let port: Int
  private let process = Process()
  private let input = Pipe()
  private let directory: URL

  init(_ options: String...) throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "mail-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "smtp_server.py")
    let python = ProcessInfo.processInfo.environment["AFTERTHOUGHTS_PYTHON"] ?? "python3"
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [python, script.path, directory.path] + options
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    port = try #require(
      Int(line.trimmingCharacters(in: .whitespacesAndNewlines)),
      "no SMTP server: AFTERTHOUGHTS_PYTHON must name a Python that has aiosmtpd")
  }

  deinit {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: directory)
  }

  /// What has arrived, oldest first.
  func mails() throws -> [ArrivedMail] {
    let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "json" }
    let numbered = files.map { (Int($0.deletingPathExtension().lastPathComponent) ?? 0, $0) }.sorted { $0.0 < $1.0 }
    return try numbered.map { try JSONDecoder().decode(ArrivedMail.self, from: Data(contentsOf: $0.1)) }
  }

  /// A certificate for 127.0.0.1 and its key, in one file.
  static func certificate() throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: "mail-\(UUID()).pem").path
    let tool = Process()
    tool.executableURL = URL(filePath: "/usr/bin/env")
    tool.arguments = [
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
      "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path,
    ]
    tool.standardError = FileHandle.nullDevice
    try tool.run()
    tool.waitUntilExit()
    try #require(tool.terminationStatus == 0)
    let both =
      try String(contentsOfFile: path, encoding: .utf8) + String(contentsOfFile: path + ".key", encoding: .utf8)
    try both.write(toFile: path, atomically: true, encoding: .utf8)
    try FileManager.default.removeItem(atPath: path + ".key")
    return path
  }
}
