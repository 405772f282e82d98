internal import EventLoop
internal import HTTP2
internal import Primitives

/// One loop's part of a channel: its connection, and the calls that wait for it.
///
/// Safety (`@unchecked Sendable`): every variable is touched on the loop only; `Channel` and the calls go there first.
final class ChannelLoop: @unchecked Sendable {
  private enum State {
    case idle
    case connecting
    case ready(ClientConnection)
    /// The last attempt failed with this error; the timer begins the next.
    case backingOff(ServiceError)
    case ended
  }

  let loop: EventLoop
  let configuration: ChannelConfiguration
  /// Bytes of whole messages that may wait for a reader before the stream's window stays shut.
  let queuedBytesMax: Int
  private let target: String
  private let tls: TLSContext?
  private let expectedIdentity: String?
  private var state = State.idle
  private var waiting: [ClientCall] = []
  private var backoff: Backoff
  private var backoffTimer: LoopTimer?
  private var connections: [ObjectIdentifier: ClientConnection] = [:]

  init(
    loop: EventLoop, target: String, tls: TLSContext?, expectedIdentity: String?, configuration: ChannelConfiguration
  ) {
    self.loop = loop
    self.target = target
    self.tls = tls
    self.expectedIdentity = expectedIdentity
    self.configuration = configuration
    queuedBytesMax = configuration.http2.streamWindowBytes / 2
    backoff = Backoff(initial: configuration.backoffInitial, max: configuration.backoffMax)
  }

  /// The header fields that every call of a method carries.
  func headers(_ method: MethodDescriptor) -> HeaderList {
    var list = HeaderList()
    list.append(":method", "POST")
    list.append(":scheme", tls == nil ? "http" : "https")
    list.append(":path", method.path)
    list.append(":authority", target)
    list.append("content-type", "application/grpc")
    list.append("te", "trailers")
    list.append("user-agent", "afterthoughts")
    list.append("grpc-accept-encoding", "\(Encodings.accepted)")
    return list
  }

  // MARK: Calls

  func submit(_ call: ClientCall) {
    switch state {
    case .ready(let connection):
      if connection.open(call) { return }
      state = .idle
      waiting.append(call)
      connect()
    case .idle:
      waiting.append(call)
      connect()
    case .connecting: waiting.append(call)
    case .backingOff(let error):
      if call.waitForReady { waiting.append(call) } else { call.fail(error) }
    case .ended: call.fail(.unavailable("The channel is closed."))
    }
  }

  func forget(_ call: ClientCall) { waiting.removeAll { $0 === call } }

  // MARK: The connection

  private func connect() {
    state = .connecting
    backoffTimer?.cancel()
    backoffTimer = nil
    Task(executorPreference: loop) { await self.attempt() }
  }

  private func attempt() async {
    do {
      let transport = try await openTransport()
      guard case .connecting = state else { return transport.abort() }
      let connection = ClientConnection(self)
      connections[ObjectIdentifier(connection)] = connection
      connection.start(transport)
    } catch {
      failed(error)
    }
  }

  private func openTransport() async throws -> ByteStream {
    var lastError: any Error = ServiceError.unavailable("The service's name has no address.")
    let name = SocketAddress(target) == nil ? SocketAddress.split(target)?.host : nil
    for address in try await SocketAddress.resolve(target).shuffled() {
      do {
        return try await ByteStream.connect(
          to: address, on: loop, tls: tls, serverName: name, expectedIdentity: expectedIdentity,
          timeout: configuration.connectTimeout)
      } catch {
        lastError = error
      }
    }
    throw lastError
  }

  private func failed(_ cause: (any Error)?) {
    guard case .connecting = state else { return }
    let error = ServiceError.unavailable("The service cannot be reached.", cause: cause)
    state = .backingOff(error)
    let calls = waiting
    waiting = calls.filter { $0.waitForReady }
    for call in calls where !call.waitForReady { call.fail(error) }
    backoffTimer = loop.schedule(after: backoff.failed()) { [self] in backoffEnded() }
  }

  private func backoffEnded() {
    guard case .backingOff = state else { return }
    if waiting.isEmpty { state = .idle } else { connect() }
  }

  // MARK: What a connection reports

  /// Its peer speaks HTTP/2: calls may go.
  func ready(_ connection: ClientConnection) {
    guard case .connecting = state else { return connection.end() }
    backoff.succeeded()
    state = .ready(connection)
    let calls = waiting
    waiting = []
    for call in calls { submit(call) }
  }

  /// It takes no new calls.
  func goneAway(_ connection: ClientConnection) {
    if case .ready(let current) = state, current === connection { state = .idle }
  }

  func closed(_ connection: ClientConnection, wasReady: Bool, _ error: (any Error)?) {
    connections[ObjectIdentifier(connection)] = nil
    if wasReady { goneAway(connection) } else { failed(error) }
  }

  /// Ends everything; calls fail with UNAVAILABLE.
  func shutdown() {
    state = .ended
    backoffTimer?.cancel()
    for call in waiting { call.fail(.unavailable("The channel is closed.")) }
    waiting = []
    for connection in connections.values { connection.end() }
  }
}

/// One connection of a channel.
///
/// Safety (`@unchecked Sendable`): confined to its loop, as its session is.
final class ClientConnection: HTTP2SessionDelegate, @unchecked Sendable {
  private let channel: ChannelLoop
  private var session: HTTP2Session?
  private var isReady = false

  init(_ channel: ChannelLoop) {
    self.channel = channel
  }

  func start(_ transport: ByteStream) {
    session = HTTP2Session(role: .client, transport: transport, limits: channel.configuration.http2, delegate: self)
  }

  /// False when it takes no more calls.
  func open(_ call: ClientCall) -> Bool {
    guard let session else { return false }
    return call.open(session)
  }

  func end() { session?.terminate(.noError) }

  func accept(_ stream: HTTP2Stream) -> (any HTTP2StreamHandler)? { nil }

  func settled() {
    isReady = true
    channel.ready(self)
  }

  func goneAway(_ code: HTTP2ErrorCode) {
    channel.goneAway(self)
    session?.startDraining()
  }

  func streamClosed() {}

  func closed(_ error: (any Error)?) {
    session = nil
    channel.closed(self, wasReady: isReady, error)
  }
}
