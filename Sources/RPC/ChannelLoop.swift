internal import EventLoop
internal import HTTP2
internal import Primitives

/// One loop's part of a channel: a connection to each of the target's addresses, which take calls in turn, and the calls
/// that wait for one.
///
/// Safety (`@unchecked Sendable`): every variable is touched on the loop only; `Channel` and the calls go there first.
final class ChannelLoop: @unchecked Sendable {
  private enum Resolution {
    case idle
    case running
    /// The name did not resolve; the timer ends the wait.
    case backingOff(ServiceError, LoopTimer)
  }

  let loop: EventLoop
  let configuration: ChannelConfiguration
  /// Bytes of whole messages that may wait for a reader before the stream's window stays shut.
  let queuedBytesMax: Int
  private let target: ChannelTarget
  private var resolution = Resolution.idle
  private var resolutionBackoff: Backoff
  private var subchannels: [Subchannel] = []
  private var turn = 0
  private var waiting: [ClientCall] = []
  private var connections: [ObjectIdentifier: ClientConnection] = [:]
  private var isEnded = false
  /// How long a connection may be silent; grows when a server complains.
  private(set) var keepaliveTime: Duration?
  var throttle = RetryThrottle()

  init(loop: EventLoop, target: ChannelTarget, configuration: ChannelConfiguration) {
    self.loop = loop
    self.target = target
    self.configuration = configuration
    keepaliveTime = configuration.keepaliveTime
    queuedBytesMax = configuration.http2.streamWindowBytes / 2
    resolutionBackoff = Backoff(initial: configuration.backoffInitial, max: configuration.backoffMax)
  }

  /// The header fields that every call of a method carries.
  func headers(_ method: MethodDescriptor) -> HeaderList {
    var list = HeaderList()
    list.append(":method", "POST")
    list.append(":scheme", target.isSecure ? "https" : "http")
    list.append(":path", method.path)
    list.append(":authority", target.authority)
    list.append("content-type", "application/grpc")
    list.append("te", "trailers")
    list.append("user-agent", "afterthoughts")
    list.append("grpc-accept-encoding", "\(Encodings.accepted)")
    return list
  }

  // MARK: Calls

  func submit(_ call: ClientCall) {
    guard !isEnded else { return call.fail(.unavailable("The channel is closed.")) }
    // Addresses that were lost are taken up again while others serve.
    if subchannels.count > 1 { connect() }
    while let subchannel = pick() {
      if subchannel.open(call) { return }
    }
    connect()
    if call.waitForReady || isConnecting {
      waiting.append(call)
    } else {
      call.fail(error)
    }
  }

  func forget(_ call: ClientCall) { waiting.removeAll { $0 === call } }

  /// The next that is ready, in turn.
  private func pick() -> Subchannel? {
    for offset in 0..<subchannels.count {
      let index = (turn + offset) % subchannels.count
      guard subchannels[index].isReady else { continue }
      turn = index + 1
      return subchannels[index]
    }
    return nil
  }

  private var isConnecting: Bool {
    if case .running = resolution { return true }
    return subchannels.contains { $0.isConnecting }
  }

  private var error: ServiceError {
    if case .backingOff(let error, _) = resolution { return error }
    return subchannels.lazy.compactMap { $0.error }.first ?? .unavailable("The service cannot be reached.")
  }

  // MARK: Addresses

  /// Looks the addresses up and connects to each that has no connection and does not back off.
  private func connect() {
    guard case .idle = resolution, subchannels.isEmpty || subchannels.contains(where: { $0.isIdle }) else { return }
    if let addresses = target.literals { return resolved(addresses) }
    resolution = .running
    Task(executorPreference: loop) {
      do {
        self.resolved(try await self.target.resolve())
      } catch {
        self.unresolved(error)
      }
    }
  }

  private func resolved(_ addresses: [SocketAddress]) {
    resolution = .idle
    resolutionBackoff.succeeded()
    guard !isEnded else { return }
    let known = subchannels
    subchannels = addresses.shuffled().map { address in
      known.first { $0.address == address } ?? Subchannel(self, address)
    }
    for subchannel in known where !addresses.contains(subchannel.address) { subchannel.end() }
    for subchannel in subchannels { subchannel.connect() }
  }

  private func unresolved(_ cause: any Error) {
    guard !isEnded else { return }
    let timer = loop.schedule(after: resolutionBackoff.failed()) { [self] in
      resolution = .idle
      backoffEnded()
    }
    resolution = .backingOff(.unavailable("The service cannot be reached.", cause: cause), timer)
    connectionFailed()
  }

  /// A transport to `address`.
  func openTransport(_ address: SocketAddress) async throws -> ByteStream {
    try await target.connect(address, on: loop, timeout: configuration.connectTimeout)
  }

  // MARK: What subchannels and connections report

  func adopt(_ transport: ByteStream, _ subchannel: Subchannel) {
    let connection = ClientConnection(self, subchannel)
    connections[ObjectIdentifier(connection)] = connection
    connection.start(transport)
  }

  func closed(_ connection: ClientConnection) { connections[ObjectIdentifier(connection)] = nil }

  func connectionReady() {
    let calls = waiting
    waiting = []
    for call in calls { submit(call) }
  }

  /// Calls that do not wait for better times fail once nothing is left to try.
  func connectionFailed() {
    guard !isConnecting, !subchannels.contains(where: { $0.isReady }) else { return }
    let error = error
    let calls = waiting
    waiting = calls.filter { $0.waitForReady }
    for call in calls where !call.waitForReady { call.fail(error) }
  }

  func backoffEnded() {
    if !waiting.isEmpty { connect() }
  }

  /// A server found our PINGs too many (gRPC A8).
  func slowKeepalive() { keepaliveTime = keepaliveTime.map { $0 * 2 } }

  /// Ends everything; calls fail with UNAVAILABLE.
  func shutdown() {
    isEnded = true
    if case .backingOff(_, let timer) = resolution { timer.cancel() }
    for call in waiting { call.fail(.unavailable("The channel is closed.")) }
    waiting = []
    for subchannel in subchannels { subchannel.end() }
    subchannels = []
    for connection in connections.values { connection.end() }
  }
}
