private import CMicroHTTPD
internal import EventLoop
private import Glibc
private import Primitives

/// libmicrohttpd without a thread: its epoll descriptor is watched by the loop, which gives it turns.
///
/// Safety: `@unchecked Sendable` because all is touched on the loop only. libmicrohttpd holds an unretained pointer to
/// this object from `start` to `stop`; `selfReference` keeps it alive in between. Each exchange is retained for
/// libmicrohttpd from `begin` to `complete`.
final class Daemon: EventHandler, @unchecked Sendable {
  private let loop: EventLoop
  private let limits: HTTPServerLimits
  private let handler: @Sendable (HTTPRequest) async -> HTTPResponse
  private let listening: Int32
  private var daemon: OpaquePointer?
  private var descriptor: Int32 = -1
  private var selfReference: Daemon?
  private var timer: LoopTimer?
  private var isRunAsked = false
  private var isDraining = false
  private var exchanges: [ObjectIdentifier: Exchange] = [:]
  private var onIdle: (() -> Void)?

  init(
    listening: Int32, loop: EventLoop, limits: HTTPServerLimits,
    handler: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) {
    self.listening = listening
    self.loop = loop
    self.limits = limits
    self.handler = handler
  }

  /// Loop thread only.
  func start() {
    daemon = microhttpd_start(
      listening, Unmanaged.passUnretained(self).toOpaque(), beginCallback, handleCallback, completedCallback,
      UInt32(limits.connectionsMax), UInt32(limits.idleSeconds), limits.headerBytesMax * 2)
    guard let daemon else {
      Log.error("http_server_failed")
      close(listening)
      return
    }
    selfReference = self
    descriptor = microhttpd_epoll(daemon)
    loop.register(descriptor, .readable, handler: self)
    run()
  }

  // MARK: Turns

  func ready(_ events: Interest) { run() }

  func loopEnds() { stop() }

  private func run() {
    guard let daemon else { return }
    MHD_run(daemon)
    guard self.daemon != nil else { return }
    timer?.cancel()
    timer = nil
    var milliseconds: UInt64 = 0
    if MHD_get_timeout(daemon, &milliseconds) == .YES {
      if milliseconds == 0 {
        askForRun()
      } else {
        timer = loop.schedule(after: .milliseconds(Int64(min(milliseconds, 60_000)))) { self.run() }
      }
    }
    if exchanges.isEmpty, let onIdle {
      self.onIdle = nil
      onIdle()
    }
  }

  /// Never from within a callback of libmicrohttpd: it does not expect to be entered twice.
  private func askForRun() {
    guard !isRunAsked else { return }
    isRunAsked = true
    loop.executeHere {
      self.isRunAsked = false
      self.run()
    }
  }

  // MARK: Requests

  fileprivate func begin(_ target: String) -> UnsafeMutableRawPointer {
    let exchange = Exchange(target: target, limits: limits)
    exchanges[ObjectIdentifier(exchange)] = exchange
    return Unmanaged.passRetained(exchange).toOpaque()
  }

  fileprivate func completed(_ exchange: Exchange) {
    exchange.complete()
    exchanges[ObjectIdentifier(exchange)] = nil
    if isDraining, exchanges.isEmpty { askForRun() }
  }

  fileprivate func handle(
    _ exchange: Exchange, _ connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ bytes: UnsafeRawBufferPointer
  ) -> MHD_Result {
    switch exchange.state {
    case .reading: break
    case .answered(let response): return queue(response, exchange, connection)
    case .handling, .queued, .completed: return .YES
    }
    if !exchange.hasBegun {
      guard let refusal = exchange.begin(connection, method: String(cString: method)) else { return .YES }
      return queue(refusal, exchange, connection)
    }
    if bytes.count > 0 { return exchange.append(bytes) ? .YES : .NO }
    switch exchange.request() {
    case .failure(let refusal):
      return queue(refusal.response, exchange, connection)
    case .success(let request):
      exchange.state = .handling
      MHD_suspend_connection(connection)
      Task(executorPreference: loop) {
        let response = await self.handler(request)
        self.answer(exchange, response)
      }
      return .YES
    }
  }

  private func answer(_ exchange: Exchange, _ response: HTTPResponse) {
    loop.assertCurrent()
    guard case .handling = exchange.state, daemon != nil, let connection = exchange.connection else { return }
    exchange.state = .answered(response)
    MHD_resume_connection(connection)
    askForRun()
  }

  private func queue(_ response: HTTPResponse, _ exchange: Exchange, _ connection: OpaquePointer) -> MHD_Result {
    exchange.state = .queued
    guard let built = build(response) ?? build(.text("The page failed.\n", status: 500)) else { return .NO }
    defer { MHD_destroy_response(built.response) }
    if isDraining { MHD_add_response_header(built.response, "Connection", "close") }
    return MHD_queue_response(connection, built.status, built.response)
  }

  /// Nil when a header cannot be sent or the status is none.
  private func build(_ response: HTTPResponse) -> (response: OpaquePointer, status: UInt32)? {
    guard (200...599).contains(response.status) else {
      Log.error("http_response_status_invalid", ["status": .number(Int64(response.status))])
      return nil
    }
    // Safety: libmicrohttpd copies the bytes (MUST_COPY) and does not write to them.
    let made = response.body.withUnsafeBytes { bytes in
      MHD_create_response_from_buffer(
        bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
    }
    guard let made else { return nil }
    for (name, value) in response.headers {
      guard MHD_add_response_header(made, name, value) == .YES else {
        Log.error("http_response_header_invalid", ["name": .text(name)])
        MHD_destroy_response(made)
        return nil
      }
    }
    return (made, UInt32(response.status))
  }

  // MARK: The end

  /// Loop thread only. Accepts no more and calls `done` when no request is open, at the latest after `grace`.
  func shutdown(grace: Duration, _ done: @escaping () -> Void) {
    guard let daemon, !isDraining else { return done() }
    isDraining = true
    let quiesced = MHD_quiesce_daemon(daemon)
    if quiesced >= 0 { close(quiesced) }
    let deadline = loop.schedule(after: grace) {
      guard let onIdle = self.onIdle else { return }
      self.onIdle = nil
      onIdle()
    }
    onIdle = {
      deadline.cancel()
      self.loop.executeHere {
        self.stop()
        done()
      }
    }
    askForRun()
  }

  private func stop() {
    guard let daemon else { return }
    // libmicrohttpd must not be stopped with a suspended connection: those still at work get a 503.
    for exchange in Array(exchanges.values) {
      answer(exchange, .text("The server is shutting down.\n", status: 503))
    }
    MHD_run(daemon)
    self.daemon = nil
    timer?.cancel()
    timer = nil
    loop.deregister(descriptor)
    MHD_stop_daemon(daemon)
    selfReference = nil
  }
}

// Safety, for the three callbacks: `context` is the daemon, which lives until libmicrohttpd has stopped; the exchange
// was retained by `begin` and is released by `completed`, the last that is heard of it.

private let beginCallback:
  @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) -> UnsafeMutableRawPointer? = {
    context, target, _ in
    guard let context, let target else { return nil }
    return Unmanaged<Daemon>.fromOpaque(context).takeUnretainedValue().begin(String(cString: target))
  }

private let handleCallback: MHD_AccessHandlerCallback = {
  context, connection, _, method, _, bytes, byteCount, state in
  guard let context, let connection, let method, let byteCount, let exchange = state?.pointee else { return .NO }
  let received = UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : byteCount.pointee)
  byteCount.pointee = 0
  return Unmanaged<Daemon>.fromOpaque(context).takeUnretainedValue().handle(
    Unmanaged<Exchange>.fromOpaque(exchange).takeUnretainedValue(), connection, method, received)
}

private let completedCallback: MHD_RequestCompletedCallback = { context, _, state, _ in
  guard let context, let exchange = state?.pointee else { return }
  state?.pointee = nil
  Unmanaged<Daemon>.fromOpaque(context).takeUnretainedValue().completed(
    Unmanaged<Exchange>.fromOpaque(exchange).takeRetainedValue())
}
