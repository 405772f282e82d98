/// What one connection allows its peer. Every value is a setting; the defaults are the house's.
package struct HTTP2Limits: Sendable {
  /// Streams a peer may have open at once; also the most handlers that run for one connection.
  package var streamsMax = 100
  /// The size of a header list that is advertised, in bytes, counted as name + value + 32 for each field.
  package var headerListBytesMax = 8 << 10
  /// Above this size the stream is reset, whatever it is for.
  package var headerListBytesHard = 16 << 10
  /// Received bytes of a stream that nobody has consumed yet.
  package var streamWindowBytes = 256 << 10
  /// Received bytes of a connection that nobody has consumed yet.
  package var connectionWindowBytes = 4 << 20
  /// Bytes of a connection that wait for the socket; above it no stream produces more.
  package var unsentBytesMax = 1 << 20
  /// Bytes of a stream that wait to be framed; above it a writer is suspended.
  package var streamUnsentBytesMax = 64 << 10
  /// The largest frame that is accepted, in bytes (16 KiB to 16 MiB - 1).
  package var frameBytesMax = 16 << 10
  /// Streams that the peer resets.
  package var resetsReceived = Rate(burst: 200, perSecond: 20)
  /// Streams that the peer makes us reset.
  package var resetsSent = Rate(burst: 200, perSecond: 20)
  /// PING frames while no data is sent.
  package var pings = Rate(burst: 20, perSecond: 1)
  /// SETTINGS frames.
  package var settings = Rate(burst: 20, perSecond: 1)
  /// DATA frames that carry nothing and end nothing.
  package var emptyData = Rate(burst: 100, perSecond: 10)
  /// PRIORITY frames.
  package var priorities = Rate(burst: 200, perSecond: 20)
  /// WINDOW_UPDATE frames beyond two for each DATA frame sent.
  package var windowUpdates = Rate(burst: 1000, perSecond: 100)
  /// The first bytes of a connection must be followed by the peer's SETTINGS within this time.
  package var handshakeTimeout: Duration = .seconds(10)

  /// A stream of which the peer takes nothing for this time, though bytes wait, is reset; a connection whose socket takes
  /// nothing is cut.
  package var writeStallTimeout: Duration = .seconds(30)
  /// A header block must be whole within this time.
  package var headerBlockTimeout: Duration = .seconds(10)
  /// The least time between a client's PINGs while it has streams open, and while it has none (gRPC A8); sent data or
  /// headers begin anew.
  package var pingInterval: Duration = .seconds(60)
  package var pingIntervalIdle: Duration = .seconds(300)
  /// PINGs that may come too early; the next ends the connection.
  package var pingStrikesMax = 2

  package init() {}

  /// A token bucket's size.
  package struct Rate: Sendable, Equatable {
    package var burst: Int
    package var perSecond: Int

    package init(burst: Int, perSecond: Int) {
      self.burst = burst
      self.perSecond = perSecond
    }
  }
}
