internal import HTTP2
internal import Primitives

/// Cuts a body into gRPC messages, whatever pieces it comes in, and inflates those that are compressed. Pure.
struct MessageAssembler {
  private let bytesMax: Int
  /// The other side has named gzip as its encoding: messages may be compressed.
  var isGzip = false
  /// Whether the message that `next` returned last was compressed.
  private(set) var wasCompressed = false
  private var isCompressed = false
  private var header: UInt64 = 0
  private var headerCount = 0
  private var body: [UInt8] = []
  private var missing = 0

  init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// Whether the body may end here: not within a message.
  var isBetweenMessages: Bool { headerCount == 0 }

  /// Reads on from `position` to the end of the next message, which it returns without its header; nil when the bytes
  /// ran out before. A message above the limit, as sent or inflated, is refused before it is allocated.
  mutating func next(_ bytes: Span<UInt8>, _ position: inout Int) throws(ServiceError) -> [UInt8]? {
    while headerCount < Frame.prefixLength {
      guard position < bytes.count else { return nil }
      header = header << 8 | UInt64(bytes[position])
      headerCount += 1
      position += 1
      if headerCount == Frame.prefixLength { try begin() }
    }
    let count = min(missing, bytes.count - position)
    if count > 0 {
      body.append(bytes, from: position, count: count)
      position += count
      missing -= count
    }
    guard missing == 0 else { return nil }
    headerCount = 0
    header = 0
    let message = body
    body = []
    wasCompressed = isCompressed
    return isCompressed ? try inflate(message) : message
  }

  /// Whether `bytes` are exactly one message, which then need not be copied; anything else is for `next` to read.
  func isWholeMessage(_ bytes: Span<UInt8>) -> Bool {
    guard headerCount == 0, bytes.count >= Frame.prefixLength, bytes[0] == 0 else { return false }
    let length = Int(bytes[1]) << 24 | Int(bytes[2]) << 16 | Int(bytes[3]) << 8 | Int(bytes[4])
    return length == bytes.count - Frame.prefixLength && length <= bytesMax
  }

  private mutating func begin() throws(ServiceError) {
    let length = Int(header & 0xFFFF_FFFF)
    switch header >> 32 {
    case 0: isCompressed = false
    case 1:
      isCompressed = true
      guard !isGzip else { break }
      throw ServiceError(
        .internal, "A message is marked as compressed, but the call names no encoding.", reason: "COMPRESSED_MESSAGE")
    default: throw ServiceError(.internal, "A message begins with an unknown flag.", reason: "MESSAGE_FLAG")
    }
    guard length <= bytesMax else { throw tooLarge("A message of \(length) bytes") }
    missing = length
    body.reserveCapacity(length)
  }

  private func inflate(_ message: [UInt8]) throws(ServiceError) -> [UInt8] {
    do {
      return try Gzip.inflate(message, bytesMax: bytesMax)
    } catch {
      switch error {
      case .tooLarge: throw tooLarge("A compressed message")
      case .malformed:
        throw ServiceError(.internal, "A compressed message is damaged.", reason: "COMPRESSED_MESSAGE")
      }
    }
  }

  private func tooLarge(_ what: String) -> ServiceError {
    ServiceError(
      .resourceExhausted, "\(what) is above the limit of \(bytesMax) bytes.", reason: "MESSAGE_TOO_LARGE")
  }
}
