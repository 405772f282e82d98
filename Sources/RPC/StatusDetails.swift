internal import Primitives

/// `google.rpc.Status` in `grpc-status-details-bin`: one ErrorInfo always, BadRequest and RetryInfo where there is
/// something to say. Written by hand, because the layers that generate messages stand above this one.
enum StatusDetails {
  static let domain = "afterthoughts"
  private static let requestIDKey = "request_id"
  /// Violations beyond this size are left out, so that the trailers stay within a peer's header limit.
  private static let violationBytesMax = 3 << 10
  private static let prefix = "type.googleapis.com/google.rpc."

  static func encode(_ error: ServiceError) -> [UInt8] {
    var status = DetailWriter()
    status.number(1, Int64(error.code.rawValue))
    status.text(2, error.message)
    var info = DetailWriter()
    info.text(1, error.reason)
    info.text(2, domain)
    if let requestID = error.requestID {
      var entry = DetailWriter()
      entry.text(1, requestIDKey)
      entry.text(2, requestID)
      info.bytes(3, entry)
    }
    status.bytes(3, any("ErrorInfo", info))
    if !error.violations.isEmpty {
      var request = DetailWriter()
      for violation in error.violations {
        var entry = DetailWriter()
        entry.text(1, violation.field)
        entry.text(2, violation.description)
        guard request.output.count + entry.output.count <= violationBytesMax else { break }
        request.bytes(1, entry)
      }
      status.bytes(3, any("BadRequest", request))
    }
    if let delay = error.retryAfter {
      var duration = DetailWriter()
      duration.number(1, delay.components.seconds)
      duration.number(2, delay.components.attoseconds / 1_000_000_000)
      var retry = DetailWriter()
      retry.bytes(1, duration)
      status.bytes(3, any("RetryInfo", retry))
    }
    return status.output
  }

  private static func any(_ name: String, _ message: DetailWriter) -> DetailWriter {
    var any = DetailWriter()
    any.text(1, prefix + name)
    any.bytes(2, message)
    return any
  }

  /// What a client can use of a received status; unknown details are skipped, and bytes that are no status give an
  /// error without details.
  static func decode(_ bytes: [UInt8], code: ServiceError.Code, message: String) -> ServiceError {
    var reason: String?
    var violations: [ServiceError.FieldViolation] = []
    var retryAfter: Duration?
    var requestID: String?
    DetailReader.forEachField(bytes[...]) { number, field in
      guard number == 3, case .bytes(let any) = field else { return }
      var name = ""
      var value: ArraySlice<UInt8> = []
      DetailReader.forEachField(any) { number, field in
        guard case .bytes(let content) = field else { return }
        if number == 1 { name = String(decoding: content, as: UTF8.self) }
        if number == 2 { value = content }
      }
      switch name {
      case prefix + "ErrorInfo":
        reason = texts(value)[1]
        requestID = self.requestID(value)
      case prefix + "BadRequest": violations += self.violations(value)
      case prefix + "RetryInfo": retryAfter = delay(value)
      default: break
      }
    }
    var error = ServiceError(code, message, reason: reason, violations: violations, retryAfter: retryAfter)
    error.requestID = requestID
    return error
  }

  private static func requestID(_ info: ArraySlice<UInt8>) -> String? {
    var found: String?
    DetailReader.forEachField(info) { number, field in
      guard number == 3, case .bytes(let entry) = field else { return }
      let texts = texts(entry)
      if texts[1] == requestIDKey { found = texts[2] }
    }
    return found
  }

  private static func texts(_ bytes: ArraySlice<UInt8>) -> [Int: String] {
    var texts: [Int: String] = [:]
    DetailReader.forEachField(bytes) { number, field in
      if case .bytes(let content) = field { texts[number] = String(decoding: content, as: UTF8.self) }
    }
    return texts
  }

  private static func violations(_ bytes: ArraySlice<UInt8>) -> [ServiceError.FieldViolation] {
    var violations: [ServiceError.FieldViolation] = []
    DetailReader.forEachField(bytes) { number, field in
      guard number == 1, case .bytes(let content) = field else { return }
      let texts = texts(content)
      violations.append(ServiceError.FieldViolation(field: texts[1] ?? "", description: texts[2] ?? ""))
    }
    return violations
  }

  private static func delay(_ bytes: ArraySlice<UInt8>) -> Duration {
    var seconds: Int64 = 0
    var nanoseconds: Int64 = 0
    DetailReader.forEachField(bytes) { number, field in
      guard number == 1, case .bytes(let content) = field else { return }
      DetailReader.forEachField(content) { number, field in
        guard case .number(let value) = field else { return }
        if number == 1 { seconds = Int64(bitPattern: value) }
        if number == 2 { nanoseconds = Int64(bitPattern: value) }
      }
    }
    guard 0...315_576_000_000 ~= seconds, 0...999_999_999 ~= nanoseconds else { return .zero }
    return .seconds(seconds) + .nanoseconds(nanoseconds)
  }
}

/// Writes the few kinds of protobuf fields that error details have.
struct DetailWriter {
  private(set) var output: [UInt8] = []

  mutating func number(_ field: UInt64, _ value: Int64) {
    guard value != 0 else { return }
    varint(field << 3)
    varint(UInt64(bitPattern: value))
  }

  mutating func text(_ field: UInt64, _ value: String) {
    guard !value.isEmpty else { return }
    varint(field << 3 | 2)
    varint(UInt64(value.utf8.count))
    output.append(contentsOf: value.utf8)
  }

  /// Adds fields that are in wire form already.
  mutating func raw(_ fields: [UInt8]) { output += fields }

  mutating func bytes(_ field: UInt64, _ message: DetailWriter) { bytes(field, message.output) }

  mutating func bytes(_ field: UInt64, _ value: [UInt8]) {
    varint(field << 3 | 2)
    varint(UInt64(value.count))
    output.append(contentsOf: value)
  }

  private mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      output.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    output.append(UInt8(rest))
  }
}

/// Reads protobuf fields; stops at the first thing that is none.
enum DetailReader {
  enum Field {
    case number(UInt64)
    case bytes(ArraySlice<UInt8>)
  }

  static func forEachField(_ bytes: ArraySlice<UInt8>, _ body: (Int, Field) -> Void) {
    var rest = bytes
    while let tag = varint(&rest) {
      let number = Int(truncatingIfNeeded: tag >> 3)
      switch tag & 7 {
      case 0:
        guard let value = varint(&rest) else { return }
        body(number, .number(value))
      case 1, 5:
        let size = tag & 7 == 1 ? 8 : 4
        guard rest.count >= size else { return }
        rest = rest.dropFirst(size)
      case 2:
        guard let length = varint(&rest), length <= UInt64(rest.count) else { return }
        body(number, .bytes(rest.prefix(Int(length))))
        rest = rest.dropFirst(Int(length))
      default: return
      }
    }
  }

  private static func varint(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard let byte = bytes.popFirst() else { return nil }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
    }
    return nil
  }
}
