internal import EventLoop
internal import HTTP2
internal import Primitives
internal import Protobuf
internal import Synchronization

/// One call at a server: the request comes in through the stream's callbacks, the handler runs as one task on the same
/// loop, and the answer goes out through the
///
/// Safety (`@unchecked Sendable`): every variable is touched on the connection's loop only. The session calls there, the
/// task prefers the loop as its executor, and `next` and `send` go there first.
final class ServerCall: HTTP2Stream, @unchecked Sendable {
  private enum Phase: Comparable {
    /// Its head or its one message is still on the way.
    case arriving
    case running
    /// The status is on its way; nothing more is taken or sent.
    case answered
    case closed
  }

  private let connection: ServerConnection
  private var phase = Phase.arriving
  private var head = RequestHead()
  private var assembler: MessageAssembler
  private var inbound = InboundMessages()
  /// The decoded request of a unary call, bound to its handler.
  private var request: MethodHandler.Prepared?
  private var info: CallInfo?
  private var task: Task<Void, Never>?
  private var isHandlerStarted = false
  private var isHandlerDone = false
  private var deadlineTimer: LoopTimer?
  /// What was sent in place of the handler's own outcome.
  private var refusal: ServiceError?
  private var isHeaderSent = false
  /// The headers name gzip: messages may be compressed.
  private var isGzip = false
  private var writer: UnsafeContinuation<Void, Never>?
  private var started: Monotonic?
  private var bytesIn = 0
  private var bytesOut = 0
  /// Received bytes that count against the window until the handler has taken enough.
  private var owedBytes = 0

  private var loop: EventLoop { connection.loop }

  init(_ connection: ServerConnection, _ session: HTTP2Session, _ id: Int32) {
    self.connection = connection
    assembler = MessageAssembler(bytesMax: connection.server.messageBytesMax)
    super.init(session: session, id: id)
    // Let go of when the stream is closed, which always comes.
    handler = self
  }

  // MARK: The handler

  /// Runs the handler, at once up to its first suspension. Not from within a callback of the session.
  func start() {
    guard phase == .arriving, let entry = head.entry, let info else { return }
    phase = .running
    isHandlerStarted = true
    connection.handlerStarted()
    let task = Task.immediate(executorPreference: loop) { await self.run(entry.handler, info) }
    if !isHandlerDone { self.task = task }
  }

  private func run(_ handler: MethodHandler, _ info: CallInfo) async {
    let server = connection.server
    var context = CallContext(info)
    do {
      let isDecided = try server.configuration.admit?(&context) ?? false
      if !isDecided, let authenticate = server.configuration.authenticate { try await authenticate(&context) }
      switch handler.body {
      case .unary:
        guard let request else { throw CancellationError() }
        self.request = nil
        try await request(self, context)
      case .streaming(let body):
        try await body(self, self, context)
        succeed(context)
      }
    } catch {
      fail(ErrorConformance.conforming(serviceError(error), context), context)
    }
    connection.handlerEnded()
  }

  private func serviceError(_ error: any Error) -> ServiceError {
    switch error {
    case let error as ServiceError: return error
    case is CancellationError:
      return refusal ?? ServiceError(.cancelled, "The call was cancelled.")
    default: return ServiceError.internal(cause: error)
    }
  }

  private static let wrongCount = ServiceError(
    .unimplemented, "The call takes exactly one message.", reason: "MESSAGE_COUNT")
  static let expired = ServiceError(.deadlineExceeded, "The time given for the call has passed.")

  // MARK: The answer

  /// Answers a unary call: the message is written once, where it is framed, unless it is compressed.
  func respond<Response: Message>(_ response: Response, _ context: CallContext) {
    guard phase == .running else { return end(nil, context) }
    phase = .answered
    if head.acceptsGzip, context.compressesResponses {
      let frame = encoded(Frame.encode(response), .asCall, true)
      bytesOut += frame.count
      sendHeaders()
      write(frame)
    } else {
      let count = Frame.size(response)
      bytesOut += count
      sendHeaders()
      write(count: count) { Frame.encode(response, into: $0) }
    }
    finish()
    end(nil, context)
  }

  /// Compresses a message that asks for it, when the client can read it. Call it before the headers are sent.
  private func encoded(_ frame: [UInt8], _ compression: MessageCompression, _ isCompressing: Bool) -> [UInt8] {
    if !isHeaderSent { isGzip = head.acceptsGzip && (isCompressing || compression == .on) }
    guard isGzip, compression == .on || (compression == .asCall && isCompressing) else { return frame }
    return Frame.compressed(frame)
  }

  private var headers: PreparedHeaders {
    if isGzip { return StatusTrailers.headersGzip }
    return head.acceptsGzip ? StatusTrailers.headersAccepting : StatusTrailers.headers
  }

  private func succeed(_ context: CallContext) {
    guard phase == .running else { return end(nil, context) }
    phase = .answered
    sendHeaders()
    finish()
    end(nil, context)
  }

  /// Sends the header block once, with what the handler has added.
  private func sendHeaders() {
    guard !isHeaderSent else { return }
    isHeaderSent = true
    if let initial = info?.addedMetadata?.initial, !initial.isEmpty {
      respond(
        StatusTrailers.headers(initial, acceptsGzip: head.acceptsGzip, isGzip: isGzip), isEnd: false)
    } else {
      respond(headers)
    }
  }

  private func finish() {
    if let trailing = info?.addedMetadata?.trailing, !trailing.isEmpty {
      finish(StatusTrailers.ok(trailing))
    } else {
      finish(StatusTrailers.ok)
    }
  }

  private func fail(_ error: ServiceError, _ context: CallContext) {
    if error.isFault, phase == .running, connection.server.configuration.onCallEnd == nil {
      Log.error(
        "call_failed",
        ["method": .text(context.method.path), "error": .text(error.description)])
    }
    if phase == .running { refuse(error) }
    end(error, context)
  }

  /// Ends the stream with an error, whatever is still on the way.
  private func refuse(_ error: ServiceError, _ headers: HeaderList? = nil) {
    guard phase < .answered else { return }
    phase = .answered
    refusal = error
    deadlineTimer?.cancel()
    inbound.fail(CancellationError())
    let added = info?.addedMetadata
    if let added, !added.initial.isEmpty { sendHeaders() }
    if isHeaderSent {
      finish(StatusTrailers.trailers(error, added?.trailing))
    } else {
      respond(headers ?? StatusTrailers.only(error, added?.trailing), isEnd: true)
    }
    giveBack(owedBytes)
    if info == nil { connection.server.configuration.onStrayRequest?(error) }
    if let info, !isHandlerStarted { report(error, CallContext(info)) }
  }

  /// The handler is done.
  private func end(_ error: ServiceError?, _ context: CallContext) {
    deadlineTimer?.cancel()
    deadlineTimer = nil
    task = nil
    isHandlerDone = true
    inbound.fail(CancellationError())
    giveBack(owedBytes)
    let isCut = phase == .closed && error == nil
    report(refusal ?? error ?? (isCut ? ServiceError(.cancelled, "The call was cancelled.") : nil), context)
  }

  private func report(_ error: ServiceError?, _ context: CallContext) {
    guard let onCallEnd = connection.server.configuration.onCallEnd, let started else { return }
    onCallEnd(context, error, started.duration(to: .now()), bytesIn, bytesOut)
  }

  private func expire() {
    guard phase < .answered else { return }
    refuse(Self.expired)
    cancelHandler()
  }

  private func cancelHandler() {
    task?.cancel()
    inbound.fail(CancellationError())
    wakeWriter()
  }

  private func wakeWriter() {
    guard let writer else { return }
    self.writer = nil
    writer.resume()
  }

  private func giveBack(_ count: Int) {
    owedBytes -= count
    consume(count)
  }
}

// MARK: - The stream's callbacks

extension ServerCall: HTTP2StreamHandler {
  func header(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    if phase == .arriving, info == nil { head.add(name, value, connection.server.table) }
  }

  func headersEnded(isEnd: Bool) {
    guard phase == .arriving, info == nil else {
      if isEnd { ended() }
      return
    }
    guard isAcceptable(), let entry = head.entry else { return }
    var deadline: Monotonic?
    if connection.server.isReporting { started = .now() }
    if case .after(let timeout) = head.timeout { deadline = (started ?? .now()).advanced(by: timeout) }
    let info = CallInfo(
      method: entry.handler.method, headers: head.headers, deadline: deadline, peer: connection.peer,
      traceIDs: connection.server.traceIDs.next(), compressesResponses: entry.handler.compressesResponses)
    assembler.isGzip = head.isGzip
    self.info = info
    if case .after(let timeout) = head.timeout {
      guard timeout > .zero else { return refuse(Self.expired) }
      deadlineTimer = loop.schedule(after: timeout) { [self] in expire() }
    }
    if case .streaming = entry.handler.body { connection.startSoon(self) }
    if isEnd { ended() }
  }

  private func isAcceptable() -> Bool {
    if isHeaderListTooLarge {
      refuse(
        ServiceError(.resourceExhausted, "The call's metadata is above the limit.", reason: "METADATA_TOO_LARGE"))
    } else if !head.isPost {
      let error = ServiceError(.unimplemented, "Only POST is served here.", reason: "METHOD_NOT_ALLOWED")
      refuse(error, StatusTrailers.http(405, error))
    } else if !head.isGRPC {
      let error = ServiceError(.unknown, "Only application/grpc is served here.", reason: "UNSUPPORTED_MEDIA_TYPE")
      refuse(error, StatusTrailers.http(415, error))
    } else if head.entry == nil {
      refuse(ServiceError(.unimplemented, "There is no such method.", reason: "NO_SUCH_METHOD"))
    } else if !head.isEncodingKnown {
      let error = ServiceError(.unimplemented, "The encoding is not supported.", reason: "UNKNOWN_ENCODING")
      refuse(error, StatusTrailers.only(error, acceptsEncodings: true))
    } else if case .invalid = head.timeout {
      refuse(ServiceError(.invalidArgument, "The call's timeout is malformed.", reason: "MALFORMED_TIMEOUT"))
    } else {
      return true
    }
    return false
  }

  func data(_ bytes: Span<UInt8>) {
    guard phase < .answered, let entry = head.entry else { return consume(bytes.count) }
    bytesIn += bytes.count
    var position = 0
    do {
      switch entry.handler.body {
      case .unary(let prepare):
        if request == nil, assembler.isWholeMessage(bytes) {
          request = try prepare(bytes.extracting(Frame.prefixLength...))
          position = bytes.count
        }
        while let message = try assembler.next(bytes, &position) {
          guard request == nil else { throw Self.wrongCount }
          request = try prepare(message.span)
          if assembler.wasCompressed { info?.isRequestCompressed.store(true, ordering: .relaxed) }
        }
      case .streaming:
        while let message = try assembler.next(bytes, &position) {
          inbound.append(message, isCompressed: assembler.wasCompressed)
        }
      }
      owedBytes += bytes.count
      // A handler that lags behind keeps the window shut; the message under way must not.
      if inbound.byteCount <= connection.server.queuedBytesMax {
        giveBack(owedBytes)
      }
    } catch {
      refuse(serviceError(error))
      consume(bytes.count)
      cancelHandler()
    }
  }

  func ended() {
    guard phase < .answered, info != nil, let entry = head.entry else { return }
    guard assembler.isBetweenMessages else {
      refuse(ServiceError(.internal, "The request ends within a message.", reason: "CUT_MESSAGE"))
      return cancelHandler()
    }
    if case .streaming = entry.handler.body { return inbound.end() }
    guard request != nil else {
      return refuse(Self.wrongCount)
    }
    connection.startSoon(self)
  }

  func drained() { wakeWriter() }

  func closed(_ code: HTTP2ErrorCode) {
    let wasOpen = phase < .answered
    phase = .closed
    deadlineTimer?.cancel()
    if wasOpen || task != nil { cancelHandler() }
  }
}

// MARK: - The handler's side

extension ServerCall: FrameSource {
  func next() async throws -> [UInt8]? {
    guard loop.isCurrent else { return try await withTaskExecutorPreference(loop) { try await self.nextHere() } }
    return try await nextHere()
  }

  private func nextHere() async throws -> [UInt8]? {
    while true {
      switch inbound.next() {
      case .message(let message):
        if owedBytes > 0, inbound.byteCount <= connection.server.queuedBytesMax {
          giveBack(owedBytes)
        }
        info?.isRequestCompressed.store(inbound.wasCompressed, ordering: .relaxed)
        return message
      case .end: return nil
      case .failure(let error): throw error
      case .wait:
        try Task.checkCancellation()
        await withTaskCancellationHandler {
          await withUnsafeContinuation { inbound.wait($0) }
        } onCancel: {
          loop.execute { self.inbound.wake() }
        }
      }
    }
  }
}

extension ServerCall: FrameSink {
  func send(_ frame: [UInt8], _ compression: MessageCompression) async throws {
    guard loop.isCurrent else {
      return try await withTaskExecutorPreference(loop) { try await self.sendHere(frame, compression) }
    }
    try await sendHere(frame, compression)
  }

  private func sendHere(_ frame: [UInt8], _ compression: MessageCompression) async throws {
    guard phase == .running, !Task.isCancelled else { throw CancellationError() }
    let frame = encoded(frame, compression, info?.compressesResponses.load(ordering: .relaxed) ?? false)
    sendHeaders()
    bytesOut += frame.count
    write(frame)
    while isFull, phase == .running {
      wakeWriter()
      await withTaskCancellationHandler {
        await withUnsafeContinuation { writer = $0 }
      } onCancel: {
        loop.execute { self.wakeWriter() }
      }
      try Task.checkCancellation()
    }
    guard phase == .running else { throw CancellationError() }
  }
}
