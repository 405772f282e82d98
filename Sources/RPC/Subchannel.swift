internal import EventLoop
internal import Primitives

/// One loop's way to one address of a channel's target: a connection, or the wait before the next attempt.
///
/// Safety (`@unchecked Sendable`): touched on the loop only, as its channel is.
final class Subchannel: @unchecked Sendable {
  private enum State {
    case idle
    case connecting
    case ready(ClientConnection)
    /// The last attempt failed with this error; the timer ends the wait.
    case backingOff(ServiceError, LoopTimer)
    case ended
  }

  let address: SocketAddress
  private let channel: ChannelLoop
  private var state = State.idle
  private var backoff: Backoff

  init(_ channel: ChannelLoop, _ address: SocketAddress) {
    self.channel = channel
    self.address = address
    backoff = Backoff(initial: channel.configuration.backoffInitial, max: channel.configuration.backoffMax)
  }

  var isIdle: Bool { if case .idle = state { true } else { false } }
  var isConnecting: Bool { if case .connecting = state { true } else { false } }
  var isReady: Bool { if case .ready = state { true } else { false } }
  /// Why it is out of reach, while it is.
  var error: ServiceError? { if case .backingOff(let error, _) = state { error } else { nil } }

  /// Sends the call's request; false when the connection takes no more calls, which is found out here.
  func open(_ call: ClientCall) -> Bool {
    guard case .ready(let connection) = state else { return false }
    if connection.open(call) { return true }
    state = .idle
    return false
  }

  /// From `idle` only.
  func connect() {
    guard isIdle else { return }
    state = .connecting
    Task(executorPreference: channel.loop) { await self.attempt() }
  }

  private func attempt() async {
    do {
      let transport = try await channel.openTransport(address)
      guard isConnecting else { return transport.abort() }
      channel.adopt(transport, self)
    } catch {
      failed(error)
    }
  }

  private func failed(_ cause: (any Error)?) {
    guard isConnecting else { return }
    let timer = channel.loop.schedule(after: backoff.failed()) { [self] in
      guard error != nil else { return }
      state = .idle
      channel.backoffEnded()
    }
    state = .backingOff(.unavailable("The service cannot be reached.", cause: cause), timer)
    channel.connectionFailed()
  }

  /// For good: the address is no longer the target's, or the channel is closed.
  func end() {
    if case .backingOff(_, let timer) = state { timer.cancel() }
    if case .ready(let connection) = state { connection.drain() }
    state = .ended
  }

  // MARK: What its connection reports

  /// Its peer speaks HTTP/2: calls may go.
  func ready(_ connection: ClientConnection) {
    guard isConnecting else { return connection.end() }
    backoff.succeeded()
    state = .ready(connection)
    channel.connectionReady()
  }

  /// It takes no new calls.
  func goneAway(_ connection: ClientConnection) {
    guard case .ready(let current) = state, current === connection else { return }
    state = .idle
  }

  func closed(_ connection: ClientConnection, wasReady: Bool, _ error: (any Error)?) {
    if wasReady { goneAway(connection) } else { failed(error) }
  }
}
