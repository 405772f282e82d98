/// What happens to one stream. All calls come on the connection's loop, and none may block.
package protocol HTTP2StreamHandler: AnyObject {
  /// One field of a header block or of the trailers. The spans live for this call only.
  func header(_ name: Span<UInt8>, _ value: Span<UInt8>)
  /// A header block is complete. `isEnd`: the peer sends nothing more.
  func headersEnded(isEnd: Bool)
  /// A piece of the body. Its bytes count against the window until `HTTP2Stream.consume`.
  func data(_ bytes: Span<UInt8>)
  /// The peer has ended its side after a body or trailers; not called when `headersEnded` said so.
  func ended()
  /// The unsent bytes fell below the mark after having been above it.
  func drained()
  /// The stream is over, for good or ill; the last call.
  func closed(_ code: HTTP2ErrorCode)
}

/// What happens to a connection. All calls come on its loop.
package protocol HTTP2SessionDelegate: AnyObject {
  /// The peer opens a stream with that id: makes it, with its handler; nil refuses it unprocessed.
  func accept(_ session: HTTP2Session, _ id: Int32) -> HTTP2Stream?
  /// The peer's first SETTINGS have arrived.
  func settled()
  /// The peer will not take new streams; `reason` is its debug text.
  func goneAway(_ code: HTTP2ErrorCode, _ reason: String)
  /// What had arrived is worked through: the moment to begin what it has made complete, outside nghttp2's callbacks.
  func received()
  /// A stream has ended.
  func streamClosed()
  /// The connection is over; every stream has been told. The last call.
  func closed(_ error: (any Error)?)
}

extension HTTP2SessionDelegate {
  package func received() {}
}
