internal import CLinux
internal import Glibc
internal import Primitives

/// A listening address with one socket per loop (SO_REUSEPORT), so that no loop hands connections to another.
package final class Listener: Sendable {
  /// The port bound, which the system chose when 0 was asked for.
  package let port: Int
  private let sockets: [ListeningSocket]

  private init(port: Int, sockets: [ListeningSocket]) {
    self.port = port
    self.sockets = sockets
  }

  /// Binds and starts to accept. `accept` is called on the connection's loop and must set the stream's delegate, or
  /// the stream stays unread. Throws UNAVAILABLE when the address cannot be bound.
  package static func listen(
    on address: SocketAddress, group: EventLoopGroup, tls: TLSContext? = nil,
    accept: @escaping @Sendable (ByteStream) -> Void
  ) throws -> Listener {
    var sockets: [ListeningSocket] = []
    var bound = address
    do {
      for loop in group.loops {
        let descriptor = try bindSocket(bound)
        sockets.append(ListeningSocket(descriptor: descriptor, loop: loop, tls: tls, accept: accept))
        if bound.port == 0 { bound = bound.with(port: localPort(descriptor)) }
      }
    } catch {
      for socket in sockets { Glibc.close(socket.descriptor) }
      throw ServiceError.unavailable("The address \(address) cannot be bound.", cause: error)
    }
    for socket in sockets {
      socket.loop.execute { socket.start() }
    }
    return Listener(port: bound.port, sockets: sockets)
  }

  /// Stops accepting; connections already accepted live on.
  package func close() async {
    for socket in sockets {
      await withCheckedContinuation { continuation in
        socket.loop.execute {
          socket.stop()
          continuation.resume()
        }
      }
    }
  }

  /// A listening, non-blocking socket for someone else to accept from and to close, and its port. Throws UNAVAILABLE.
  package static func bind(_ address: SocketAddress) throws -> (descriptor: Int32, port: Int) {
    do throws(StreamError) {
      let descriptor = try bindSocket(address)
      return (descriptor, localPort(descriptor))
    } catch {
      throw ServiceError.unavailable("The address \(address) cannot be bound.", cause: error)
    }
  }

  private static func bindSocket(_ address: SocketAddress) throws(StreamError) -> Int32 {
    let descriptor = socket(address.family, linux_stream_socket, 0)
    guard descriptor >= 0 else { throw .last("socket") }
    var on: Int32 = 1
    let length = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, length)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, length)
    if case .v6 = address { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, length) }
    let isBound = address.withSystemAddress { Glibc.bind(descriptor, $0, $1) == 0 }
    guard isBound, Glibc.listen(descriptor, 1024) == 0 else {
      let error = StreamError.last(isBound ? "listen" : "bind")
      Glibc.close(descriptor)
      throw error
    }
    return descriptor
  }

  private static func localPort(_ descriptor: Int32) -> Int {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        getsockname(descriptor, raw, &length) == 0 ? SocketAddress(raw)?.port ?? 0 : 0
      }
    }
  }
}

/// One loop's part of a listener.
///
/// Safety: `@unchecked Sendable` because its variables are loop thread only.
private final class ListeningSocket: EventHandler, @unchecked Sendable {
  private static let acceptsPerTurnMax = 64
  private static let handshakeTimeout = Duration.seconds(10)
  private static let restWithoutDescriptors = Duration.milliseconds(100)

  let descriptor: Int32
  let loop: EventLoop
  private let tls: TLSContext?
  private let accept: @Sendable (ByteStream) -> Void
  private var isOpen = true

  init(
    descriptor: Int32, loop: EventLoop, tls: TLSContext?, accept: @escaping @Sendable (ByteStream) -> Void
  ) {
    self.descriptor = descriptor
    self.loop = loop
    self.tls = tls
    self.accept = accept
  }

  func start() {
    if isOpen { loop.register(descriptor, .readable, handler: self) }
  }

  func stop() {
    guard isOpen else { return }
    isOpen = false
    loop.deregister(descriptor)
    Glibc.close(descriptor)
  }

  func loopEnds() { stop() }

  func ready(_ events: Interest) {
    for _ in 0..<Self.acceptsPerTurnMax {
      guard isOpen, acceptOne() else { return }
    }
  }

  /// False when no more connections wait.
  private func acceptOne() -> Bool {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var peer: SocketAddress?
    let accepted = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
        let accepted = accept4(descriptor, raw, &length, linux_accept_flags)
        if accepted >= 0 { peer = SocketAddress(raw) }
        return accepted
      }
    }
    guard accepted >= 0 else { return mayAcceptAfterError() }
    guard let peer else {
      Glibc.close(accepted)
      return true
    }
    setNoDelay(accepted)
    do throws(StreamError) {
      let session: TLSSession? = if let tls { try tls.session(descriptor: accepted, peer: nil) } else { nil }
      let stream = ByteStream(
        descriptor: accepted, loop: loop, peer: peer, tls: session, expected: nil,
        state: session == nil ? .open : .handshaking)
      accept(stream)
      stream.start(timeout: Self.handshakeTimeout)
    } catch {
      Log.warning("tls_session_failed", ["reason": .text("\(error)")])
      Glibc.close(accepted)
    }
    return true
  }

  private func mayAcceptAfterError() -> Bool {
    switch errno {
    case EINTR, ECONNABORTED, EPROTO: return true
    case EMFILE, ENFILE, ENOBUFS, ENOMEM:
      // The connection stays in the backlog and the descriptor stays readable: rest instead of spinning.
      Log.warning("accept_without_descriptors", ["code": .number(Int64(errno))])
      loop.modify(descriptor, [])
      loop.schedule(after: Self.restWithoutDescriptors) { [self] in
        if isOpen { loop.modify(descriptor, .readable) }
      }
      return false
    default: return false
    }
  }
}
