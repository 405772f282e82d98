import EventLoop
import HTTP2
import Primitives
import Synchronization

/// A client that sends what it is told, right or wrong, and shows the response as it came.
final class RawClient: HTTP2SessionDelegate, @unchecked Sendable {
  // Safety: touched on its loop only; `send` and `connect` run there.
  private var session: HTTP2Session?
  let goneAwaySignal = Signal()
  let closedSignal = Signal()
  let goneAwayCode = Mutex<HTTP2ErrorCode?>(nil)

  struct Response: Sendable {
    var headers: [String: String] = [:]
    var body: [UInt8] = []
    var code = HTTP2ErrorCode.connectionLost
    var status: String? { headers["grpc-status"] }
  }

  static func connect(port: Int, on loop: EventLoop) async throws -> RawClient {
    try await withTaskExecutorPreference(loop) {
      let transport = try await ByteStream.connect(to: SocketAddress("127.0.0.1:\(port)")!, on: loop)
      let client = RawClient()
      client.session = HTTP2Session(role: .client, transport: transport, limits: HTTP2Limits(), delegate: client)
      return client
    }
  }

  /// A well-formed call but for `changes`: a value replaces or adds a field, nil leaves it out.
  func call(
    _ path: String = "/test.Notes/Unary", _ changes: [(String, String?)] = [], body: [UInt8] = [0, 0, 0, 0, 0],
    isReading: Bool = true, on loop: EventLoop
  ) async -> Response {
    var fields: [(String, String)] = [
      (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "test"),
      ("content-type", "application/grpc"), ("te", "trailers"),
    ]
    for (name, value) in changes {
      let index = fields.firstIndex { $0.0 == name }
      if let index { fields.remove(at: index) }
      if let value { fields.insert((name, value), at: index ?? fields.count) }
    }
    var list = HeaderList()
    for (name, value) in fields { list.append(name, value) }
    return await withTaskExecutorPreference(loop) { [list] in
      await withCheckedContinuation { continuation in
        let handler = Handler(continuation)
        let stream = self.session?.request(list, isEnd: false, handler: handler)
        guard let stream else { return continuation.resume(returning: Response()) }
        if isReading { handler.stream = stream }
        stream.write(body)
        stream.finish()
      }
    }
  }

  /// Opens streams and resets each as soon as its request is sent.
  func openAndReset(_ count: Int, on loop: EventLoop) async {
    await withTaskExecutorPreference(loop) {
      for _ in 0..<count {
        var list = HeaderList()
        list.append(":method", "POST")
        list.append(":scheme", "http")
        list.append(":path", "/test.Notes/Unary")
        list.append(":authority", "test")
        list.append("content-type", "application/grpc")
        let signal = Signal()
        let stream = session?.request(list, isEnd: false, handler: ClosedHandler(signal))
        guard let stream else { return }
        stream.write([0, 0, 0, 0, 0])
        stream.finish()
        // A timer runs in the next turn: by then the request has left.
        await withCheckedContinuation { continuation in
          loop.schedule(after: .zero) { continuation.resume() }
        }
        stream.reset(.cancel)
        await signal.wait()
      }
    }
  }

  private final class ClosedHandler: HTTP2StreamHandler {
    private let signal: Signal

    init(_ signal: Signal) { self.signal = signal }

    func header(_ name: Span<UInt8>, _ value: Span<UInt8>) {}
    func headersEnded(isEnd: Bool) {}
    func data(_ bytes: Span<UInt8>) {}
    func ended() {}
    func drained() {}
    func closed(_ code: HTTP2ErrorCode) { signal.raise() }
  }

  func accept(_ session: HTTP2Session, _ id: Int32) -> HTTP2Stream? { nil }
  func settled() {}
  func goneAway(_ code: HTTP2ErrorCode, _ reason: String) {
    goneAwayCode.withLock { $0 = code }
    goneAwaySignal.raise()
  }
  func streamClosed() {}
  func closed(_ error: (any Error)?) {
    session = nil
    closedSignal.raise()
  }

  private final class Handler: HTTP2StreamHandler {
    private let continuation: CheckedContinuation<Response, Never>
    private var response = Response()
    var stream: HTTP2Stream?

    init(_ continuation: CheckedContinuation<Response, Never>) { self.continuation = continuation }

    func header(_ name: Span<UInt8>, _ value: Span<UInt8>) { response.headers[name.text] = value.text }
    func headersEnded(isEnd: Bool) {}
    func data(_ bytes: Span<UInt8>) {
      response.body.append(bytes)
      stream?.consume(bytes.count)
    }
    func ended() {}
    func drained() {}
    func closed(_ code: HTTP2ErrorCode) {
      response.code = code
      continuation.resume(returning: response)
    }
  }
}
