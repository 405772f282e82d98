internal import EventLoop
internal import HTTP2
internal import Primitives

/// One connection of a channel.
///
/// Safety (`@unchecked Sendable`): confined to its loop, as its session is.
final class ClientConnection: HTTP2SessionDelegate, @unchecked Sendable {
  private let channel: ChannelLoop
  private let subchannel: Subchannel
  private var session: HTTP2Session?
  private var isReady = false
  private var keepaliveTimer: LoopTimer?

  init(_ channel: ChannelLoop, _ subchannel: Subchannel) {
    self.channel = channel
    self.subchannel = subchannel
  }

  func start(_ transport: ByteStream) {
    let session = HTTP2Session(
      role: .client, transport: transport, limits: channel.configuration.http2, delegate: self)
    self.session = session
    session.notesReceipt = channel.keepaliveTime != nil
  }

  /// False when it takes no more calls.
  func open(_ call: ClientCall) -> Bool {
    guard let session else { return false }
    return call.open(session)
  }

  func end() { session?.terminate(.noError) }

  /// Lets its calls finish.
  func drain() { session?.startDraining() }

  // MARK: Keepalive

  /// A connection that is silent for the channel's keepalive time is asked for a sign of life.
  private func keepAlive() {
    guard let session, let time = channel.keepaliveTime else { return }
    keepaliveTimer = channel.loop.schedule(at: session.lastReceipt.advanced(by: time)) { [self] in
      let isSilent = session.lastReceipt.advanced(by: time) <= .now()
      if isSilent, session.streamCount > 0 || channel.configuration.keepsIdleConnections {
        ask(session)
      } else {
        if isSilent { session.noteReceipt() }
        keepAlive()
      }
    }
  }

  private func ask(_ session: HTTP2Session) {
    let asked = Monotonic.now()
    session.ping()
    keepaliveTimer = channel.loop.schedule(after: channel.configuration.keepaliveTimeout) { [self] in
      guard session.lastReceipt > asked else {
        Log.warning("rpc_peer_silent", ["peer": .text(session.transport.peerAddress.description)])
        return session.abort()
      }
      keepAlive()
    }
  }

  // MARK: HTTP2SessionDelegate

  func accept(_ session: HTTP2Session, _ id: Int32) -> HTTP2Stream? { nil }

  func settled() {
    isReady = true
    keepAlive()
    subchannel.ready(self)
  }

  func goneAway(_ code: HTTP2ErrorCode, _ reason: String) {
    if code == .enhanceYourCalm, reason == "too_many_pings" { channel.slowKeepalive() }
    subchannel.goneAway(self)
    session?.startDraining()
  }

  func streamClosed() {}

  func closed(_ error: (any Error)?) {
    keepaliveTimer?.cancel()
    session = nil
    channel.closed(self)
    subchannel.closed(self, wasReady: isReady, error)
  }
}
