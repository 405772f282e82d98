package import EventLoop
internal import HTTP2
internal import Primitives
internal import Synchronization

/// A gRPC server: the same services on every loop of a group.
package final class Server: Sendable {
  private enum State: Sendable {
    case built
    case serving(Listener)
    case ended
  }

  private let configuration: ServerConfiguration
  private let group: EventLoopGroup
  private let loops: [ServerLoop]
  private let state = Mutex(State.built)

  /// Two services with the same method are a bug and stop the process.
  package init(configuration: ServerConfiguration, services: [any Service], group: EventLoopGroup) {
    self.configuration = configuration
    self.group = group
    let table = MethodTable(
      configuration.servesReflection ? services + [ReflectionService(services: services)] : services)
    let totals = ServerTotals(configuration.limits)
    loops = group.loops.map { ServerLoop(loop: $0, configuration: configuration, table: table, totals: totals) }
  }

  /// Listens; throws UNAVAILABLE when the address cannot be had. A server starts once.
  package func start() throws {
    try state.withLock { state in
      guard case .built = state else { return }
      let loops = loops
      state = .serving(
        try Listener.listen(on: configuration.address, group: group, tls: configuration.tls) { transport in
          loops.first { $0.loop === transport.loop }?.accept(transport)
        })
    }
  }

  /// The port it listens on; 0 before `start`.
  package var port: Int {
    state.withLock { state in
      if case .serving(let listener) = state { listener.port } else { 0 }
    }
  }

  /// A transport to this server, whose end is on `loop`; for channels of this process.
  func connect(from loop: EventLoop) throws -> ByteStream {
    guard let server = loops.first(where: { $0.loop === loop }) ?? loops.randomElement() else {
      throw ServiceError.unavailable("The server has no loop.")
    }
    let (near, far) = try ByteStream.pair(loop, server.loop)
    server.loop.execute { server.accept(far) }
    return near
  }

  /// Takes no more connections, lets calls under way finish for `grace`, then cuts off what is left. Returns when every
  /// connection is over.
  package func shutdown(grace: Duration) async {
    let listener = state.withLock { state -> Listener? in
      defer { state = .ended }
      if case .serving(let listener) = state { return listener }
      return nil
    }
    await listener?.close()
    await withTaskGroup { group in
      for loop in loops {
        group.addTask {
          await withCheckedContinuation { continuation in
            loop.loop.execute { loop.drain(grace: grace) { continuation.resume() } }
          }
        }
      }
    }
  }
}

/// One loop's part of a server: its connections.
///
/// Safety (`@unchecked Sendable`): the variables are touched on the loop only; `accept` and `drain` are called there by
/// the listener and by `Server.shutdown`.
final class ServerLoop: @unchecked Sendable {
  let loop: EventLoop
  let configuration: ServerConfiguration
  let table: MethodTable
  /// Bytes of whole messages that may wait for a handler before its stream's window stays shut.
  let queuedBytesMax: Int
  let messageBytesMax: Int
  let isReporting: Bool
  var traceIDs = TraceIDSource()
  private var connections: [ObjectIdentifier: ServerConnection] = [:]
  private let totals: ServerTotals
  private var onEmpty: (() -> Void)?
  private var isDraining = false
  private var refusalLoggedAt: Monotonic?

  init(loop: EventLoop, configuration: ServerConfiguration, table: MethodTable, totals: ServerTotals) {
    self.loop = loop
    self.totals = totals
    self.configuration = configuration
    self.table = table
    queuedBytesMax = configuration.limits.http2.streamWindowBytes / 2
    messageBytesMax = configuration.limits.messageBytesMax
    isReporting = configuration.onCallEnd != nil
  }

  func accept(_ transport: ByteStream) {
    let host = transport.peerAddress.host
    guard !isDraining, totals.admits(host) else { return refuse(transport) }
    let connection = ServerConnection(self, host: host)
    connections[ObjectIdentifier(connection)] = connection
    connection.start(transport, totals.output)
  }

  /// Counts each connection that is one too many, and logs one a minute.
  private func refuse(_ transport: ByteStream) {
    transport.abort()
    guard !isDraining else { return }
    configuration.onConnectionFault?("too_many_connections")
    let now = Monotonic.now()
    if let last = refusalLoggedAt, last.duration(to: now) < .seconds(60) { return }
    refusalLoggedAt = now
    Log.warning(
      "connection_refused", ["reason": "too_many_connections", "peer": .text(transport.peerAddress.description)])
  }

  func closed(_ connection: ServerConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    totals.leaves(connection.host)
    if connections.isEmpty { onEmpty?() }
  }

  func drain(grace: Duration, _ completion: @escaping () -> Void) {
    isDraining = true
    let timer = loop.schedule(after: grace) { [self] in
      for connection in connections.values { connection.abort() }
    }
    onEmpty = { [self] in
      onEmpty = nil
      timer.cancel()
      completion()
    }
    for connection in connections.values { connection.drain() }
    if connections.isEmpty { onEmpty?() }
  }
}
