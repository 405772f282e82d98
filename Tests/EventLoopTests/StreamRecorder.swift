import EventLoop
import Synchronization

/// A delegate that writes down what it hears; `echoes` sends everything back.
///
/// Safety: `@unchecked Sendable` because the variables are touched on the stream's loop only.
final class StreamRecorder: ByteStreamDelegate, @unchecked Sendable {
  enum Event: Equatable {
    case established
    case received([UInt8])
    case drained
    case closed(StreamError?)
  }

  let events: AsyncStream<Event>
  private let continuation: AsyncStream<Event>.Continuation
  private let echoes: Bool
  private(set) var closedCount = 0
  var onReceived: ((ByteStream) -> Void)?

  init(echoes: Bool = false) {
    self.echoes = echoes
    (events, continuation) = AsyncStream.makeStream()
  }

  func established(_ stream: ByteStream) { continuation.yield(.established) }

  func received(_ bytes: UnsafeRawBufferPointer, _ stream: ByteStream) {
    if echoes { stream.write(bytes) } else { continuation.yield(.received(Array(bytes))) }
    onReceived?(stream)
  }

  func drained(_ stream: ByteStream) { continuation.yield(.drained) }

  func closed(_ error: (any Error)?, _ stream: ByteStream) {
    closedCount += 1
    continuation.yield(.closed(error as? StreamError))
  }

  /// Waits for the next event that is not `received`.
  func next() async -> Event? {
    for await event in events {
      if case .received = event { continue }
      return event
    }
    return nil
  }

  /// Waits until `count` bytes have come, or the end.
  func bytes(_ count: Int) async -> [UInt8] {
    var all: [UInt8] = []
    for await event in events {
      if case .received(let bytes) = event { all += bytes }
      if case .closed = event { return all }
      if all.count >= count { return all }
    }
    return all
  }
}

/// A listener on an ephemeral port of this host whose connections echo, and what they heard.
struct EchoServer {
  let group: EventLoopGroup
  let listener: Listener
  let recorders: AsyncStream<(ByteStream, StreamRecorder)>

  init(group: EventLoopGroup, tls: TLSContext? = nil, echoes: Bool = true) throws {
    let (stream, continuation) = AsyncStream<(ByteStream, StreamRecorder)>.makeStream()
    recorders = stream
    self.group = group
    listener = try Listener.listen(on: .v4(0x7f00_0001, port: 0), group: group, tls: tls) { accepted in
      let recorder = StreamRecorder(echoes: echoes)
      accepted.delegate = recorder
      continuation.yield((accepted, recorder))
    }
  }

  var address: SocketAddress { .v4(0x7f00_0001, port: UInt16(listener.port)) }

  /// The next accepted connection.
  func accepted() async -> (stream: ByteStream, recorder: StreamRecorder)? {
    for await pair in recorders { return pair }
    return nil
  }
}

/// Runs `body` on the loop and waits for its value.
func on<T: Sendable>(_ loop: EventLoop, _ body: @escaping @Sendable () -> T) async -> T {
  await Task(executorPreference: loop) { body() }.value
}
