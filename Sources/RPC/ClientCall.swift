internal import EventLoop
internal import HTTP2
internal import Primitives

/// One call at a client.
///
/// Safety (`@unchecked Sendable`): every variable is touched on the channel's loop only. The session and the loop call
/// there, and `begin`, `next`, `send` and the rest go there first.
final class ClientCall: @unchecked Sendable {
  private enum Phase: Comparable {
    case new
    /// In the channel's queue, for want of a connection.
    case waiting
    case open
    case done
  }

  private let channel: ChannelLoop
  let method: MethodDescriptor
  let waitForReady: Bool
  private let deadline: Monotonic?
  private let metadata: Metadata
  private let responseMetadata: ResponseMetadata?
  /// The custom metadata of the header block that is coming in, when somebody wants it.
  private var fields = RequestHeaders()
  /// The whole request, when it is one message: kept to repeat a call that was refused unprocessed.
  private let frame: [UInt8]?
  private var phase = Phase.new
  private var stream: HTTP2Stream?
  private var status = ClientStatus()
  private var hasHeaders = false
  private var isRepeated = false
  /// Headers of an answer have come, so that the call may not be repeated.
  private var isCommitted = false
  private var retry = RetryPolicy()
  private var retryTimer: LoopTimer?
  private var assembler: MessageAssembler
  private var inbound = InboundMessages()
  private var owedBytes = 0
  private var deadlineTimer: LoopTimer?
  private var writer: UnsafeContinuation<Void, Never>?
  private var isSendingEnded = false
  private let compressesRequests: Bool
  private var started: Monotonic?

  var loop: EventLoop { channel.loop }

  init(_ channel: ChannelLoop, _ method: MethodDescriptor, _ options: CallOptions, frame: [UInt8]?) {
    self.channel = channel
    self.method = method
    self.frame = options.compressesRequests ? frame.map { Frame.compressed($0) } : frame
    waitForReady = options.waitForReady
    deadline = options.effectiveDeadline()
    compressesRequests = options.compressesRequests
    metadata = Self.traced(options.metadata)
    responseMetadata = options.responseMetadata
    assembler = MessageAssembler(bytesMax: channel.configuration.messageBytesMax)
  }

  /// With the trace that the task belongs to, unless the caller has named one.
  private static func traced(_ metadata: Metadata) -> Metadata {
    guard let trace = TraceContext.current, metadata["traceparent"] == nil else { return metadata }
    var metadata = metadata
    metadata.append(trace)
    return metadata
  }

  // MARK: On the loop

  /// Starts the call; its outcome comes through `next`.
  func begin() {
    loop.assertCurrent()
    if channel.configuration.onCallEnd != nil { started = .now() }
    if let deadline {
      let now = Monotonic.now()
      guard now < deadline else { return fail(ServerCall.expired) }
      deadlineTimer = loop.schedule(after: now.duration(to: deadline)) { [self] in
        giveUp(ServerCall.expired)
      }
    }
    phase = .waiting
    channel.submit(self)
  }

  /// Sends the request; false when the session takes no more streams.
  func open(_ session: HTTP2Session) -> Bool {
    guard phase == .waiting else { return true }
    var headers = channel.headers(method)
    if let deadline { headers.append("grpc-timeout", GRPCTimeout.format(Monotonic.now().duration(to: deadline))) }
    if compressesRequests { headers.append("grpc-encoding", "gzip") }
    if retry.attempts > 1 { headers.append("grpc-previous-rpc-attempts", String(retry.attempts - 1)) }
    headers.append(metadata)
    guard let stream = session.request(headers, isEnd: false, handler: self) else { return false }
    self.stream = stream
    phase = .open
    if let frame {
      stream.write(frame)
      stream.finish()
    }
    wakeWriter()
    return true
  }

  /// Ends the call at this side, whatever the service does.
  func giveUp(_ error: ServiceError) {
    guard phase < .done else { return }
    let stream = stream
    if phase == .waiting { channel.forget(self) }
    fail(error)
    stream?.reset(.cancel)
  }

  func cancel() { giveUp(ServiceError(.cancelled, "The call was cancelled.")) }

  /// Ends the call; messages that still wait are dropped.
  func fail(_ error: ServiceError) {
    guard phase < .done else { return }
    inbound.fail(error)
    finish(error)
  }

  /// Ends the call with what the service said, after the messages that still wait.
  private func complete(_ error: ServiceError?) {
    guard phase < .done else { return }
    if let error, startAgain(after: error) { return }
    if error == nil { channel.throttle.succeeded() }
    inbound.end(error)
    finish(error)
  }

  private func finish(_ error: ServiceError?) {
    phase = .done
    if let started { channel.configuration.onCallEnd?(method, error, started.duration(to: .now())) }
    deadlineTimer?.cancel()
    deadlineTimer = nil
    retryTimer?.cancel()
    wakeWriter()
  }

  /// Has the call repeated, if it may be after that failure.
  private func startAgain(after error: ServiceError) -> Bool {
    guard error.code == .unavailable else { return false }
    channel.throttle.failed()
    guard frame != nil, method.isIdempotent, !isCommitted, channel.throttle.isOpen,
      let wait = retry.next(status.pushback)
    else { return false }
    let start = Monotonic.now().advanced(by: wait)
    if let deadline, start >= deadline { return false }
    stream?.letGo()
    stream = nil
    status = ClientStatus()
    fields = RequestHeaders()
    assembler = MessageAssembler(bytesMax: channel.configuration.messageBytesMax)
    hasHeaders = false
    phase = .waiting
    retryTimer = loop.schedule(at: start) { [self] in repeatCall() }
    return true
  }

  private func wakeWriter() {
    guard let writer else { return }
    self.writer = nil
    writer.resume()
  }

  private func giveBack(_ count: Int) {
    owedBytes -= count
    stream?.consume(count)
  }
}

// MARK: - The stream's callbacks

extension ClientCall: HTTP2StreamHandler {
  func header(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    if status.add(name, value) { return }
    if responseMetadata != nil, !name.starts(with: ":"), !name.starts(with: "grpc-") { fields.append(name, value) }
  }

  func headersEnded(isEnd: Bool) {
    let received = fields
    fields = RequestHeaders()
    if !isEnd, !hasHeaders, status.isInterim { return status.forget() }
    if let responseMetadata {
      if isEnd { responseMetadata.trailing = received.metadata } else { responseMetadata.initial = received.metadata }
    }
    let isFirst = !hasHeaders
    hasHeaders = true
    assembler.isGzip = status.isGzip
    if isEnd {
      ended()
    } else if status.isForeign {
      guard isFirst else { return }
      complete(status.error)
      stream?.reset(.cancel)
    } else {
      isCommitted = true
    }
  }

  func data(_ bytes: Span<UInt8>) {
    guard phase == .open else {
      stream?.consume(bytes.count)
      return
    }
    var position = 0
    do throws(ServiceError) {
      while let message = try assembler.next(bytes, &position) {
        inbound.append(message, isCompressed: assembler.wasCompressed)
      }
      owedBytes += bytes.count
      if inbound.byteCount <= channel.queuedBytesMax { giveBack(owedBytes) }
    } catch {
      stream?.consume(bytes.count)
      giveUp(error)
    }
  }

  func ended() {
    guard phase < .done else { return }
    let stream = stream
    let isCut = !assembler.isBetweenMessages
    complete(
      status.error ?? (isCut ? ServiceError(.internal, "The answer ends within a message.") : nil))
    if !isSendingEnded, frame == nil { stream?.reset(.cancel) }
  }

  func drained() { wakeWriter() }

  func closed(_ code: HTTP2ErrorCode) {
    let stream = stream
    self.stream = nil
    guard phase < .done else { return }
    if code == .refusedStream, frame != nil, !hasHeaders, !isRepeated, stream != nil {
      isRepeated = true
      phase = .waiting
      // Not within the callback of the session that has just refused.
      return loop.executeHere { self.repeatCall() }
    }
    complete(ClientStatus.error(code))
  }

  private func repeatCall() {
    if phase == .waiting { channel.submit(self) }
  }
}

// MARK: - The caller's side

extension ClientCall {
  /// Runs a call that answers with one message. On the loop.
  func response() async throws -> [UInt8] {
    if Task.isCancelled { throw ServiceError(.cancelled, "The call was cancelled.") }
    begin()
    return try await only()
  }
}

extension ClientCall: FrameSource {
  func next() async throws -> [UInt8]? {
    guard loop.isCurrent else { return try await withTaskExecutorPreference(loop) { try await self.nextHere() } }
    return try await nextHere()
  }

  private func nextHere() async throws -> [UInt8]? {
    while true {
      switch inbound.next() {
      case .message(let message):
        if owedBytes > 0, inbound.byteCount <= channel.queuedBytesMax { giveBack(owedBytes) }
        return message
      case .end: return nil
      case .failure(let error): throw error
      case .wait:
        await withTaskCancellationHandler {
          await withUnsafeContinuation { inbound.wait($0) }
        } onCancel: {
          loop.execute { self.cancel() }
        }
      }
    }
  }
}

extension ClientCall: FrameSink {
  func send(_ frame: [UInt8], _ compression: MessageCompression) async throws {
    let frame = compressesRequests && compression != .off ? Frame.compressed(frame) : frame
    guard loop.isCurrent else { return try await withTaskExecutorPreference(loop) { try await self.sendHere(frame) } }
    try await sendHere(frame)
  }

  private func sendHere(_ frame: [UInt8]) async throws {
    while phase == .waiting || phase == .new || stream?.isFull == true { await waitToSend() }
    guard phase == .open, !isSendingEnded, let stream else {
      // Why it is over is what the caller wants to know; a call that ended well takes no more either.
      if case .failure(let error) = inbound.next() { throw error }
      throw ServiceError(.cancelled, "The call is over.")
    }
    stream.write(frame)
  }

  private func waitToSend() async {
    wakeWriter()
    await withTaskCancellationHandler {
      await withUnsafeContinuation { writer = $0 }
    } onCancel: {
      loop.execute { self.cancel() }
    }
  }

  /// Ends the requests.
  func finishSending() async throws {
    guard loop.isCurrent else {
      return try await withTaskExecutorPreference(loop) { try await self.finishSendingHere() }
    }
    try await finishSendingHere()
  }

  private func finishSendingHere() async throws {
    while phase == .waiting || phase == .new { await waitToSend() }
    isSendingEnded = true
    stream?.finish()
  }
}
