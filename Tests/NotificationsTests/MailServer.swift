import Foundation
import Testing

/// A mail that arrived, as Python's parser reads it.
struct ArrivedMail: Decodable, Sendable {
  let recipient: String
  let messageID: String
  let subject: String
  let from: String
  let to: String
  let date: String
  let text: String
  let html: String
}

/// An aiosmtpd process of its own, ended with the object. Python is `AFTERTHOUGHTS_PYTHON`, else `python3`; it needs
/// the package aiosmtpd.
final class MailServer {
  let port: Int
  private let process = Process()
  private let input = Pipe()
  private let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "mail-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "smtp_server.py")
    let python = ProcessInfo.processInfo.environment["AFTERTHOUGHTS_PYTHON"] ?? "python3"
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [python, script.path, directory.path]
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
}
