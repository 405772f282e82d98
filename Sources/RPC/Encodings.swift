internal import HTTP2

/// Whether one message of a stream is compressed. It only ever is when the other side takes gzip and it gets shorter.
package enum MessageCompression: Sendable {
  /// As the call, or else the method, asks.
  case asCall
  case on
  case off
}

/// The message encodings of `grpc-encoding` and `grpc-accept-encoding`.
enum Encodings {
  static let accepted: StaticString = "identity,gzip"

  /// Whether a list such as `identity, deflate, gzip` names gzip.
  static func includeGzip(_ list: Span<UInt8>) -> Bool {
    let space = UInt8(ascii: " ")
    var start = 0
    for index in 0...list.count where index == list.count || list[index] == UInt8(ascii: ",") {
      var end = index
      while start < end, list[start] == space { start += 1 }
      while start < end, list[end - 1] == space { end -= 1 }
      if list.extracting(start..<end).equals("gzip") { return true }
      start = index + 1
    }
    return false
  }
}
