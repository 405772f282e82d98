internal import HTTP2
internal import Primitives

/// What the header block of a request says, read field by field as it arrives.
struct RequestHead {
  enum Timeout {
    case none, invalid
    case after(Duration)
  }

  private(set) var isPost = false
  private(set) var entry: MethodTable.Entry?
  private(set) var isGRPC = false
  private(set) var timeout = Timeout.none
  private(set) var isEncodingKnown = true
  /// The client may send compressed messages.
  private(set) var isGzip = false
  /// The client takes compressed messages.
  private(set) var acceptsGzip = false
  private(set) var headers = RequestHeaders()

  mutating func add(_ name: Span<UInt8>, _ value: Span<UInt8>, _ table: MethodTable) {
    switch name.count {
    case 2 where name.equals("te"): break
    case 5 where name.equals(":path"): entry = table.find(value)
    case 7 where name.equals(":method"): isPost = value.equals("POST")
    case 7 where name.equals(":scheme"): break
    case 10 where name.equals(":authority"): break
    case 12 where name.equals("content-type"): isGRPC = Self.isGRPC(value)
    case 12 where name.equals("grpc-timeout"):
      timeout = GRPCTimeout.parse(value).map { .after($0) } ?? .invalid
    case 13 where name.equals("grpc-encoding"):
      isGzip = value.equals("gzip")
      isEncodingKnown = isGzip || value.equals("identity")
    case 14 where name.equals("content-length"): break
    case 20 where name.equals("grpc-accept-encoding"): acceptsGzip = Encodings.includeGzip(value)
    default:
      guard !name.starts(with: "grpc-"), !name.starts(with: ":") else { return }
      headers.append(name, value)
    }
  }

  /// `application/grpc`, `application/grpc+proto`, either with parameters.
  static func isGRPC(_ value: Span<UInt8>) -> Bool {
    guard value.starts(with: "application/grpc") else { return false }
    if value.count == 16 { return true }
    if value[16] == UInt8(ascii: ";") { return true }
    guard value.starts(with: "application/grpc+proto") else { return false }
    return value.count == 22 || value[22] == UInt8(ascii: ";")
  }
}
