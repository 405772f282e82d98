private import Glibc
private import Synchronization

/// One JSON object a line on standard error. Keys are a closed set of short names; values are identifiers, codes,
/// counts and times: never a token, an address, a title or content.
package enum Log {
  package enum Level: Int, Sendable, Comparable {
    case debug, info, warning, error
    package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    fileprivate var name: String {
      switch self {
      case .debug: "debug"
      case .info: "info"
      case .warning: "warning"
      case .error: "error"
      }
    }
  }

  package enum Value: Sendable, ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral
  {
    case text(String)
    case number(Int64)
    case real(Double)
    case flag(Bool)

    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int64) { self = .number(value) }
    package init(booleanLiteral value: Bool) { self = .flag(value) }
  }

  private static let settings = Mutex<(service: String, level: Level)>(("", .info))

  /// Names the service in every line and sets the least level that is written; called once at start.
  package static func configure(service: String, level: Level) {
    settings.withLock { $0 = (service, level) }
  }

  package static func debug(_ event: String, _ fields: KeyValuePairs<String, Value> = [:]) {
    write(.debug, event, fields)
  }
  package static func info(_ event: String, _ fields: KeyValuePairs<String, Value> = [:]) {
    write(.info, event, fields)
  }
  package static func warning(_ event: String, _ fields: KeyValuePairs<String, Value> = [:]) {
    write(.warning, event, fields)
  }
  package static func error(_ event: String, _ fields: KeyValuePairs<String, Value> = [:]) {
    write(.error, event, fields)
  }

  private static func write(_ level: Level, _ event: String, _ fields: KeyValuePairs<String, Value>) {
    let (service, least) = settings.withLock { $0 }
    guard level >= least else { return }
    var line: [UInt8] = []
    line.reserveCapacity(512)
    line.append(contentsOf: "{\"time\":\"".utf8)
    Instant.now().append(to: &line)
    line.append(contentsOf: "\",\"level\":\"".utf8)
    line.append(contentsOf: level.name.utf8)
    line.append(contentsOf: "\",\"service\":".utf8)
    JSONText.append(service, to: &line)
    line.append(contentsOf: ",\"event\":".utf8)
    JSONText.append(event, to: &line)
    for (key, value) in fields {
      line.append(UInt8(ascii: ","))
      JSONText.append(key, to: &line)
      line.append(UInt8(ascii: ":"))
      switch value {
      case .text(let text): JSONText.append(text, to: &line)
      case .number(let number): line.append(contentsOf: String(number).utf8)
      case .real(let number): line.append(contentsOf: (number.isFinite ? String(number) : "null").utf8)
      case .flag(let flag): line.append(contentsOf: (flag ? "true" : "false").utf8)
      }
    }
    line.append(contentsOf: "}\n".utf8)
    line.withUnsafeBytes { bytes in
      _ = Glibc.write(2, bytes.baseAddress, bytes.count)
    }
  }
}

/// JSON strings (RFC 8259 §7).
package enum JSONText {
  /// Appends `text` as a quoted JSON string.
  package static func append(_ text: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    // Most texts are names and numbers, and go out as they are.
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
      output.append(contentsOf: text.utf8)
      output.append(UInt8(ascii: "\""))
      return
    }
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        output.append(UInt8(ascii: "\\"))
        output.append(byte)
      case 0..<0x20:
        output.append(contentsOf: "\\u00".utf8)
        output.append(Hex.digit(byte >> 4))
        output.append(Hex.digit(byte & 15))
      default:
        output.append(byte)
      }
    }
    output.append(UInt8(ascii: "\""))
  }
}
