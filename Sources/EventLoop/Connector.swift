internal import CLinux
internal import Glibc
internal import Primitives

extension ByteStream {
  /// Loop thread only: begins to connect and returns at once. The delegate hears `established`, or `closed` with a
  /// `StreamError`. `serverName` (a DNS name or address literal) or `expectedIdentity` (a URI, which takes
  /// precedence) is whom the certificate must name; without either the address itself.
  package static func open(
    to address: SocketAddress, on loop: EventLoop, tls: TLSContext? = nil, serverName: String? = nil,
    expectedIdentity: String? = nil, timeout: Duration = .seconds(10), delegate: any ByteStreamDelegate
  ) throws(StreamError) -> ByteStream {
    let stream = try begin(
      to: address, on: loop, tls: tls, serverName: serverName, expectedIdentity: expectedIdentity)
    stream.delegate = delegate
    stream.start(timeout: timeout)
    return stream
  }

  /// Any thread: connects and returns when established. Set `delegate` next, on the loop; nothing is lost before that.
  /// Throws UNAVAILABLE with a `StreamError` as its cause. `timeout` covers the handshake.
  package static func connect(
    to address: SocketAddress, on loop: EventLoop, tls: TLSContext? = nil, serverName: String? = nil,
    expectedIdentity: String? = nil, timeout: Duration = .seconds(10)
  ) async throws -> ByteStream {
    try await withCheckedThrowingContinuation { continuation in
      loop.execute {
        do {
          let stream = try begin(
            to: address, on: loop, tls: tls, serverName: serverName, expectedIdentity: expectedIdentity)
          stream.onOpened = { error in
            if let error {
              continuation.resume(
                throwing: ServiceError.unavailable("A server cannot be reached.", cause: error))
            } else {
              continuation.resume(returning: stream)
            }
          }
          stream.start(timeout: timeout)
        } catch {
          continuation.resume(throwing: ServiceError.unavailable("A server cannot be reached.", cause: error))
        }
      }
    }
  }

  /// Any thread: two plaintext streams of this process that are connected with each other, the first on `near`, the
  /// second on `far`. Set `delegate` of each, on its loop.
  package static func pair(_ near: EventLoop, _ far: EventLoop) throws(StreamError) -> (ByteStream, ByteStream) {
    var descriptors: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, linux_stream_socket, 0, &descriptors) == 0 else { throw .last("socketpair") }
    let ends = zip(descriptors, [near, far]).map { descriptor, loop in
      ByteStream(
        descriptor: descriptor, loop: loop, peer: .v4(0x7F00_0001, port: 0), tls: nil, expected: nil, state: .open)
    }
    for end in ends { end.loop.execute { end.start(timeout: nil) } }
    return (ends[0], ends[1])
  }

  private static func begin(
    to address: SocketAddress, on loop: EventLoop, tls: TLSContext?, serverName: String?, expectedIdentity: String?
  ) throws(StreamError) -> ByteStream {
    loop.assertCurrent()
    let descriptor = socket(address.family, linux_stream_socket, 0)
    guard descriptor >= 0 else { throw .last("socket") }
    setNoDelay(descriptor)
    do throws(StreamError) {
      let expected: PeerName? =
        tls == nil ? nil : expectedIdentity.map { .identity($0) } ?? .server(serverName ?? address.host)
      let session: TLSSession? = if let tls { try tls.session(descriptor: descriptor, peer: expected) } else { nil }
      let result = address.withSystemAddress { Glibc.connect(descriptor, $0, $1) }
      guard result == 0 || errno == EINPROGRESS else {
        let error = StreamError.last("connect")
        session?.free()
        throw error
      }
      return ByteStream(
        descriptor: descriptor, loop: loop, peer: address, tls: session, expected: expected, state: .connecting)
    } catch {
      Glibc.close(descriptor)
      throw error
    }
  }
}

/// Small writes go out at once: the loop already gathers them by turn.
func setNoDelay(_ descriptor: Int32) {
  var on: Int32 = 1
  setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
}
