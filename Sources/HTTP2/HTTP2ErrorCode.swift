/// Why a stream or a connection ended (RFC 9113 §7); unknown numbers are kept.
package struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  package static let noError = HTTP2ErrorCode(rawValue: 0)
  package static let protocolError = HTTP2ErrorCode(rawValue: 1)
  package static let internalError = HTTP2ErrorCode(rawValue: 2)
  package static let refusedStream = HTTP2ErrorCode(rawValue: 7)
  package static let cancel = HTTP2ErrorCode(rawValue: 8)
  package static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 11)
  /// No code of the wire: the connection went away under the stream.
  package static let connectionLost = HTTP2ErrorCode(rawValue: .max)
}
