import EventLoop
import Primitives
import RPC
import Synchronization

/// A service whose handlers a test supplies.
struct TestService: Service {
  static let descriptor = ServiceDescriptor(name: "test.Notes", methods: [unary, lookUp, expand, collect, chat])
  static let unary = MethodDescriptor(service: "test.Notes", name: "Unary", kind: .unary)
  static let lookUp = MethodDescriptor(service: "test.Notes", name: "LookUp", kind: .unary, isIdempotent: true)
  static let expand = MethodDescriptor(service: "test.Notes", name: "Expand", kind: .serverStreaming)
  static let collect = MethodDescriptor(service: "test.Notes", name: "Collect", kind: .clientStreaming)
  static let chat = MethodDescriptor(service: "test.Notes", name: "Chat", kind: .bidirectional)
  let handlers: [MethodHandler]
}

/// A real server and a channel to it, on the loopback.
struct Rig {
  let group: EventLoopGroup
  let server: Server
  let channel: Channel

  static func run<R>(
    loops: Int = 2, _ handlers: [MethodHandler], configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: (Rig) async throws -> R
  ) async throws -> R {
    let group = EventLoopGroup(count: loops)
    var configuration = ServerConfiguration(address: SocketAddress("127.0.0.1:0")!)
    configure(&configuration)
    let server = Server(configuration: configuration, services: [TestService(handlers: handlers)], group: group)
    try server.start()
    let channel = Channel(target: "127.0.0.1:\(server.port)", group: group)
    let result: Result<R, any Error>
    do {
      result = .success(try await body(Rig(group: group, server: server, channel: channel)))
    } catch {
      result = .failure(error)
    }
    await channel.shutdown()
    await server.shutdown(grace: .zero)
    await group.shutdown()
    return try result.get()
  }

  func unary(_ note: Note, _ options: CallOptions = CallOptions(timeout: .seconds(20))) async throws -> Note {
    try await channel.unary(TestService.unary, note, options)
  }
}

/// Something that happens once and can be waited for.
final class Signal: Sendable {
  private struct State {
    var isRaised = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  func raise() {
    let waiters = state.withLock { state in
      state.isRaised = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isRaised = state.withLock { state in
        if !state.isRaised { state.waiters.append(continuation) }
        return state.isRaised
      }
      if isRaised { continuation.resume() }
    }
  }
}

/// Suspends until the task is cancelled, then throws.
func untilCancelled() async throws -> Never {
  let signal = Signal()
  await withTaskCancellationHandler {
    await signal.wait()
  } onCancel: {
    signal.raise()
  }
  throw CancellationError()
}

/// The `ServiceError` that `body` throws; nil when it throws none.
func failure(_ body: () async throws -> Void) async -> ServiceError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? ServiceError
  }
}
