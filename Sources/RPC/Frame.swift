internal import HTTP2
internal import Primitives
internal import Protobuf

/// gRPC's message frame: a flag byte, a 4-byte big-endian length, the message.
enum Frame {
  static let prefixLength = 5
  /// Shorter messages are not worth gzip's 18 bytes around them.
  private static let compressedBytesMin = 64

  /// The message behind its frame header, in one allocation.
  static func encode<M: Message>(_ message: M) -> [UInt8] {
    var bytes = message.serialized(reserving: prefixLength)
    setPrefix(0, &bytes)
    return bytes
  }

  /// The bytes that `encode(_:into:)` writes.
  static func size<M: Message>(_ message: M) -> Int { prefixLength + message.serializedSize }

  /// The same, into a buffer of exactly its size.
  static func encode<M: Message>(_ message: M, into buffer: UnsafeMutableRawBufferPointer) {
    message.serialize(into: UnsafeMutableRawBufferPointer(rebasing: buffer[prefixLength...]))
    let length = UInt32(truncatingIfNeeded: buffer.count - prefixLength)
    buffer[0] = 0
    buffer.storeBytes(of: length.bigEndian, toByteOffset: 1, as: UInt32.self)
  }

  /// Bytes that are a message already, behind their frame header.
  static func encode(_ message: [UInt8]) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: prefixLength)
    bytes += message
    setPrefix(0, &bytes)
    return bytes
  }

  /// A framed message with its content compressed; the frame itself where that would not make it shorter.
  static func compressed(_ frame: [UInt8]) -> [UInt8] {
    guard frame.count - prefixLength >= compressedBytesMin, var bytes = Gzip.compress(frame, from: prefixLength) else {
      return frame
    }
    setPrefix(1, &bytes)
    return bytes
  }

  private static func setPrefix(_ flag: UInt8, _ bytes: inout [UInt8]) {
    let length = UInt32(truncatingIfNeeded: bytes.count - prefixLength)
    bytes[0] = flag
    bytes[1] = UInt8(truncatingIfNeeded: length >> 24)
    bytes[2] = UInt8(truncatingIfNeeded: length >> 16)
    bytes[3] = UInt8(truncatingIfNeeded: length >> 8)
    bytes[4] = UInt8(truncatingIfNeeded: length)
  }

  /// Decodes what a client sent; INVALID_ARGUMENT when it is no such message.
  static func request<M: Message>(_ bytes: Span<UInt8>) throws -> M {
    do {
      return try bytes.withUnsafeBytes { try M(serialized: $0) }
    } catch {
      throw ServiceError(
        .invalidArgument, "The request is not a well-formed message.", reason: "MALFORMED_MESSAGE", cause: error)
    }
  }

  /// The same for an array.
  static func request<M: Message>(_ bytes: [UInt8]) throws -> M { try request(bytes.span) }

  /// Decodes what a server sent; INTERNAL when it is no such message.
  static func response<M: Message>(_ bytes: [UInt8]) throws -> M {
    do {
      return try M(serialized: bytes)
    } catch {
      throw ServiceError(
        .internal, "The service sent a malformed answer.", reason: "MALFORMED_MESSAGE", cause: error)
    }
  }
}

/// Where the messages of the other side come from.
protocol FrameSource: AnyObject, Sendable {
  /// The next message without its frame header; nil after the last. Throws what ended the call early.
  func next() async throws -> [UInt8]?
}

extension FrameSource {
  /// The one message of a call that carries exactly one.
  func only() async throws -> [UInt8] {
    guard let first = try await next(), try await next() == nil else {
      throw ServiceError(.unimplemented, "The call takes exactly one message.", reason: "MESSAGE_COUNT")
    }
    return first
  }
}

/// Where messages to the other side go.
protocol FrameSink: AnyObject, Sendable {
  /// Queues a framed message; suspends while too much is unsent. Throws when the call is over.
  func send(_ frame: [UInt8], _ compression: MessageCompression) async throws
}
