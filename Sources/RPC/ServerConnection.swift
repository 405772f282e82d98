internal import EventLoop
internal import HTTP2
internal import Primitives

/// One client's connection at a server.
///
/// Safety (`@unchecked Sendable`): confined to its loop; the session calls it there, and so do its calls.
final class ServerConnection: HTTP2SessionDelegate, @unchecked Sendable {
  let server: ServerLoop
  let host: String
  var loop: EventLoop { server.loop }
  private var session: HTTP2Session?
  private var knownPeer: Peer?
  /// Handlers that run, those of streams already reset included.
  private var handlerCount = 0
  private var complete: ContiguousArray<ServerCall> = []
  private var spareComplete: ContiguousArray<ServerCall> = []
  private var acceptedCount = 0
  private var acceptedAtLastCheck = 0
  private var idleTimer: LoopTimer?
  private var ageTimer: LoopTimer?

  init(_ server: ServerLoop, host: String) {
    self.server = server
    self.host = host
  }

  func start(_ transport: ByteStream, _ output: OutputBudget) {
    let session = HTTP2Session(
      role: .server, transport: transport, limits: server.configuration.limits.http2, delegate: self)
    session.outputBudget = output
    self.session = session
    watchIdleness()
    let age = server.configuration.limits.ageMax * Double.random(in: 0.9...1.1)
    ageTimer = loop.schedule(after: age) { [self] in retire("max_age") }
  }

  /// The other end, known once the handshake is over.
  var peer: Peer {
    if let knownPeer { return knownPeer }
    guard let transport = session?.transport else { return Peer(address: .v4(0, port: 0), identity: nil) }
    let peer = Peer(address: transport.peerAddress, identity: transport.peerIdentity)
    knownPeer = peer
    return peer
  }

  func drain(_ reason: StaticString = "") { session?.startDraining(reason) }

  func abort() { session?.abort() }

  /// Has `call` started as soon as nghttp2's callbacks are over: its handler may then run on the spot.
  func startSoon(_ call: ServerCall) { complete.append(call) }

  func handlerStarted() { handlerCount += 1 }

  func handlerEnded() { handlerCount -= 1 }

  /// Takes no more calls; a peer that does not end the connection in time is cut off.
  private func retire(_ reason: StaticString) {
    drain(reason)
    ageTimer?.cancel()
    ageTimer = loop.schedule(after: server.configuration.limits.ageGrace) { [self] in abort() }
  }

  /// Looks once in each period, so that calls need not touch a clock: an idle connection lives for one to two periods.
  private func watchIdleness() {
    idleTimer = loop.schedule(after: server.configuration.limits.idleTimeout) { [self] in
      guard let session else { return }
      if session.streamCount == 0, acceptedCount == acceptedAtLastCheck { return retire("max_idle") }
      acceptedAtLastCheck = acceptedCount
      watchIdleness()
    }
  }

  // MARK: HTTP2SessionDelegate

  func accept(_ session: HTTP2Session, _ id: Int32) -> HTTP2Stream? {
    guard handlerCount < server.configuration.limits.http2.streamsMax else { return nil }
    acceptedCount += 1
    return ServerCall(self, session, id)
  }

  /// Calls that became complete while bytes were received.
  func received() {
    guard !complete.isEmpty else { return }
    swap(&complete, &spareComplete)
    for call in spareComplete { call.start() }
    spareComplete.removeAll(keepingCapacity: true)
  }

  func settled() {}

  func goneAway(_ code: HTTP2ErrorCode, _ reason: String) {}

  func streamClosed() {}

  func closed(_ error: (any Error)?) {
    idleTimer?.cancel()
    ageTimer?.cancel()
    if let fault = session?.fault { server.configuration.onConnectionFault?(fault) }
    session = nil
    server.closed(self)
  }
}
