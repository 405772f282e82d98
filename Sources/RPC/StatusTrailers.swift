internal import HTTP2
internal import Primitives

/// How the outcome of a call is written on the wire.
enum StatusTrailers {
  /// A client's `grpc-message` beyond this is cut; trailers must stay within a peer's header limit.
  private static let messageBytesMax = 1024

  static let headers = PreparedHeaders([":status": "200", "content-type": "application/grpc"])
  /// For a client that takes gzip.
  static let headersAccepting = PreparedHeaders([
    ":status": "200", "content-type": "application/grpc", "grpc-accept-encoding": Encodings.accepted,
  ])
  /// For answers whose messages may be compressed.
  static let headersGzip = PreparedHeaders([
    ":status": "200", "content-type": "application/grpc", "grpc-encoding": "gzip",
    "grpc-accept-encoding": Encodings.accepted,
  ])
  static let ok = PreparedHeaders(["grpc-status": "0"])

  /// Headers with metadata of the handler's.
  static func headers(_ initial: Metadata, acceptsGzip: Bool, isGzip: Bool) -> HeaderList {
    var list = HeaderList()
    list.append(":status", "200")
    list.append("content-type", "application/grpc")
    if isGzip { list.append("grpc-encoding", "gzip") }
    if acceptsGzip { list.append("grpc-accept-encoding", "\(Encodings.accepted)") }
    list.append(initial)
    return list
  }

  /// The trailers of a call that went well, with metadata of the handler's.
  static func ok(_ trailing: Metadata) -> HeaderList {
    var list = HeaderList()
    list.append("grpc-status", "0")
    list.append(trailing)
    return list
  }

  /// The trailers of a failed call whose headers are sent.
  static func trailers(_ error: ServiceError, _ trailing: Metadata? = nil) -> HeaderList {
    var list = HeaderList()
    append(error, &list)
    if let trailing { list.append(trailing) }
    return list
  }

  /// Headers and trailers in one, for a call that failed before it answered.
  static func only(
    _ error: ServiceError, _ trailing: Metadata? = nil, acceptsEncodings: Bool = false
  ) -> HeaderList {
    var list = HeaderList()
    list.append(":status", "200")
    list.append("content-type", "application/grpc")
    if acceptsEncodings { list.append("grpc-accept-encoding", "\(Encodings.accepted)") }
    append(error, &list)
    if let trailing { list.append(trailing) }
    return list
  }

  /// The answer to what is no gRPC request.
  static func http(_ status: Int, _ error: ServiceError) -> HeaderList {
    var list = HeaderList()
    list.append(":status", String(status))
    append(error, &list)
    return list
  }

  private static func append(_ error: ServiceError, _ list: inout HeaderList) {
    list.append("grpc-status", String(error.code.rawValue))
    let message = PercentEncoding.encode(clipped(error.message))
    if !message.isEmpty { list.append("grpc-message", message) }
    list.append("grpc-status-details-bin", Base64.encode(StatusDetails.encode(error), alphabet: .standard))
  }

  private static func clipped(_ text: String) -> String {
    text.utf8.count <= messageBytesMax ? text : String(decoding: text.utf8.prefix(messageBytesMax), as: UTF8.self)
  }
}
