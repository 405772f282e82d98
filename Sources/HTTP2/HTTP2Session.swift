internal import CNghttp2
package import EventLoop
package import Primitives

/// One HTTP/2 connection over a byte stream, at either side. Keeps itself alive until the connection is over.
///
/// Safety (`@unchecked Sendable`): confined to its loop; the byte stream and the loop call it there, and callers are on
/// it, which `EventLoop` guarantees.
package final class HTTP2Session: @unchecked Sendable {
  package enum Role: Sendable { case server, client }

  private enum Drain { case none, noticed, announced }

  package let role: Role
  package let loop: EventLoop
  package let limits: HTTP2Limits
  package let transport: ByteStream
  let raw: OpaquePointer
  var delegate: (any HTTP2SessionDelegate)?
  var guardState: FloodGuard
  package private(set) var streamCount = 0
  private unowned(unsafe) var firstStream: HTTP2Stream?
  private var isFlushScheduled = false
  private var drain = Drain.none
  /// The connection is over.
  package private(set) var isClosed = false
  private(set) var isTerminating = false
  private var isSettled = false
  private var handshakeTimer: LoopTimer?
  /// Why the peer was sent away, when it was: a short name for a log line and a counter.
  package private(set) var fault: String?
  private var drainReason: StaticString = ""
  private var isGreeted = false
  /// The peer has acknowledged our SETTINGS.
  var areSettingsKnown = false
  /// Resets that `invalidFrameReceived` has counted and that are not sent yet.
  private var countedResets = 0
  private var watchTimer: LoopTimer?
  /// The stream whose header block has begun and is not whole; 0 for none.
  var openHeaderBlock: Int32 = 0
  private var headerStall = StallCounter()
  private var outputStall = StallCounter()
  private var framedBytes = 0
  var streamUnsentBytes = 0
  /// Shared with other connections; nil for none.
  package var outputBudget: OutputBudget?
  private var budgetedBytes = 0
  /// Whether `lastReceipt` is kept.
  package var notesReceipt = false
  package private(set) var lastReceipt = Monotonic.now()

  /// Takes over `transport`; on its loop, before it has delivered anything.
  package init(role: Role, transport: ByteStream, limits: HTTP2Limits, delegate: any HTTP2SessionDelegate) {
    self.role = role
    self.transport = transport
    self.limits = limits
    self.delegate = delegate
    loop = transport.loop
    guardState = FloodGuard(limits: limits)
    raw = Nghttp2.makeSession(role, limits)
    // Safety: the session outlives its nghttp2 object, which `deinit` frees.
    nghttp2_session_set_user_data(raw, Unmanaged.passUnretained(self).toOpaque())
    transport.delegate = self
    submitSettings()
    handshakeTimer = loop.schedule(after: limits.handshakeTimeout) { [self] in
      blame("handshake_timeout")
      transport.abort()
    }
  }

  deinit {
    nghttp2_session_del(raw)
  }

  private func submitSettings() {
    var entries = [
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: UInt32(Int32.max)),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: UInt32(limits.streamWindowBytes)),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: UInt32(limits.headerListBytesMax)),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_FRAME_SIZE.rawValue), value: UInt32(limits.frameBytesMax)),
    ]
    if role == .client {
      entries[0].value = 0
      entries.append(
        nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0))
    }
    let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
    nghttp2_submit_settings(raw, none, entries, entries.count)
    nghttp2_session_set_local_window_size(raw, none, 0, Int32(limits.connectionWindowBytes))
    scheduleFlush()
  }

  // MARK: Requests

  /// Opens a stream at a client. With `isEnd` the request has no body, else `write` and `finish` follow. nil when the
  /// connection takes no more streams. Above the peer's stream limit the request waits its turn.
  package func request(_ headers: HeaderList, isEnd: Bool, handler: any HTTP2StreamHandler) -> HTTP2Stream? {
    guard !isClosed, !isTerminating, drain == .none else { return nil }
    let stream = HTTP2Stream(session: self, id: 0)
    let retained = Unmanaged.passRetained(stream)
    let id = headers.withFields { fields, count in
      if isEnd { return nghttp2_submit_request(raw, nil, fields, count, nil, retained.toOpaque()) }
      var provider = stream.dataProvider
      return nghttp2_submit_request(raw, nil, fields, count, &provider, retained.toOpaque())
    }
    guard id > 0 else {
      retained.release()
      return nil
    }
    stream.id = id
    stream.handler = handler
    link(stream)
    scheduleFlush()
    return stream
  }

  // MARK: The end

  /// Lets the streams that are open finish and takes no others: GOAWAY with the highest id, a PING, at its answer
  /// GOAWAY with the real last id and `reason` (a client sends the last one at once).
  package func startDraining(_ reason: StaticString = "") {
    guard drain == .none, !isClosed else { return }
    drainReason = reason
    let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
    if role == .server {
      drain = .noticed
      nghttp2_submit_shutdown_notice(raw)
    } else {
      drain = .announced
      nghttp2_submit_goaway(raw, none, 0, 0, nil, 0)
    }
    scheduleFlush()
  }

  /// The PING follows the notice: nghttp2 would send it first, and its answer would not say that the notice has come.
  func goAwaySent() {
    if drain == .noticed { nghttp2_submit_ping(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), Nghttp2.drainPing) }
  }

  func pingAnswered(_ payload: UnsafePointer<UInt8>) {
    guard drain == .noticed, (0..<8).allSatisfy({ payload[$0] == Nghttp2.drainPing[$0] }) else { return }
    drain = .announced
    let last = nghttp2_session_get_last_proc_stream_id(raw)
    nghttp2_submit_goaway(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), last, 0, drainReason.utf8Start, drainReason.utf8CodeUnitCount)
    scheduleFlush()
  }

  /// Ends the connection with GOAWAY and a reason; open streams are told when it is gone.
  package func terminate(_ code: HTTP2ErrorCode, _ reason: StaticString = "") {
    guard !isClosed, !isTerminating else { return }
    isTerminating = true
    let last = nghttp2_session_get_last_proc_stream_id(raw)
    nghttp2_submit_goaway(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), last, code.rawValue, reason.utf8Start, reason.utf8CodeUnitCount)
    scheduleFlush()
  }

  /// Ends the connection now.
  package func abort() { transport.abort() }

  // MARK: Streams

  func link(_ stream: HTTP2Stream) {
    stream.next = firstStream
    firstStream?.previous = stream
    firstStream = stream
    streamCount += 1
    if role == .server, watchTimer == nil { watch() }
  }

  /// Forgets a stream that nghttp2 has closed; the caller gives up the reference that nghttp2 held.
  func close(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
    if let previous = stream.previous { previous.next = stream.next } else { firstStream = stream.next }
    stream.next?.previous = stream.previous
    stream.previous = nil
    stream.next = nil
    streamCount -= 1
    streamUnsentBytes -= stream.unsentBytes
    stream.isClosed = true
    if stream.unconsumedBytes > 0, !isClosed {
      nghttp2_session_consume_connection(raw, stream.unconsumedBytes)
      scheduleFlush()
    }
    let handler = stream.handler
    stream.handler = nil
    handler?.closed(code)
    delegate?.streamClosed()
    if drain != .none { scheduleFlush() }
  }

  // MARK: Bytes

  func scheduleFlush() {
    guard !isFlushScheduled else { return }
    isFlushScheduled = true
    loop.afterTurn(notify: self)
  }

  private func flush() {
    while transport.unsentBytes < limits.unsentBytesMax {
      var bytes: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(raw, &bytes)
      guard count >= 0 else { return transport.abort() }
      guard count > 0 else { break }
      if isGreeted { transport.write(UnsafeRawBufferPointer(start: bytes, count: count)) } else { greet(bytes, count) }
      framedBytes += count
      if isClosed { return }
    }
    if nghttp2_session_want_write(raw) == 0 {
      if nghttp2_session_want_read(raw) == 0 || isTerminating || (drain == .announced && streamCount == 0) {
        transport.close()
      }
    } else if isTerminating {
      transport.close()
    }
  }

  /// Counts a frame that costs more than it should; false after the peer has been sent away.
  func permits(_ event: FloodGuard.Event) -> Bool {
    if isTerminating { return false }
    if guardState.allows(event, at: .now()) { return true }
    blame("flood_\(event)")
    terminate(.enhanceYourCalm, event == .ping ? "too_many_pings" : "flood")
    return false
  }

  /// nghttp2 has answered a frame with a reset or with GOAWAY; false after the peer has been sent away.
  func invalidFrameReceived() -> Bool {
    countedResets += 1
    return permits(.resetSent)
  }

  /// A reset was sent. nghttp2 makes some without telling of an invalid frame; they count as well.
  func resetSent(_ code: HTTP2ErrorCode) {
    guard role == .server, code != .noError else { return }
    // A peer that does not know the limit yet may pass it.
    guard code != .refusedStream || areSettingsKnown else { return }
    if countedResets > 0 { countedResets -= 1 } else { _ = permits(.resetSent) }
  }

  /// Notes why the connection ends; the first reason counts.
  func blame(_ reason: String) {
    if fault == nil { fault = reason }
  }

  /// nghttp2 ends the whole connection of a peer that opens one stream too many, where RFC 9113 §5.1.2 asks for the
  /// stream alone. So it knows no limit, `beginHeaders` keeps it, and the first entry of our SETTINGS is filled in here.
  private func greet(_ bytes: UnsafePointer<UInt8>?, _ count: Int) {
    isGreeted = true
    var frame = Array(UnsafeBufferPointer(start: bytes, count: count))
    let value = Nghttp2.firstSettingOffset + 2
    if role == .server, frame.count >= value + 4 {
      for index in 0..<4 { frame[value + index] = UInt8(truncatingIfNeeded: limits.streamsMax >> (24 - 8 * index)) }
    }
    transport.write(frame)
  }

  /// The same for a PING; a client's also counts by gRPC's rules for keepalive.
  func permitsPing() -> Bool {
    guard permits(.ping) else { return false }
    guard role == .server, !guardState.allowsKeepalive(hasStreams: streamCount > 0, at: .now()) else { return true }
    blame("flood_keepalive")
    terminate(.enhanceYourCalm, "too_many_pings")
    return false
  }

  /// Asks the peer for a sign of life.
  package func ping() {
    guard !isClosed else { return }
    nghttp2_submit_ping(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
    scheduleFlush()
  }

  /// The peer counts as heard of now.
  package func noteReceipt() { lastReceipt = .now() }

  func peerSettled() {
    guard !isSettled else { return }
    isSettled = true
    handshakeTimer?.cancel()
    handshakeTimer = nil
    delegate?.settled()
  }
}

extension HTTP2Session: TurnEndHandler {
  package func turnEnds() {
    isFlushScheduled = false
    if !isClosed { flush() }
    if !isClosed { budget() }
  }
}

extension HTTP2Session: ByteStreamDelegate {
  package func established(_ stream: ByteStream) {}

  package func received(_ bytes: UnsafeRawBufferPointer, _ stream: ByteStream) {
    guard !isClosed, !isTerminating else { return }
    if notesReceipt { noteReceipt() }
    let count = nghttp2_session_mem_recv(raw, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
    if count < 0, !isClosed {
      isTerminating = true
      blame("protocol_error")
    }
    delegate?.received()
    scheduleFlush()
  }

  package func drained(_ stream: ByteStream) { scheduleFlush() }

  package func closed(_ error: (any Error)?, _ stream: ByteStream) {
    guard !isClosed else { return }
    isClosed = true
    handshakeTimer?.cancel()
    if !isSettled, let error = error as? StreamError, case .tls = error { blame("tls_handshake") }
    if let fault {
      Log.warning("connection_ended", ["reason": .text(fault), "peer": .text(transport.peerAddress.description)])
    }
    watchTimer?.cancel()
    budget()
    while let stream = firstStream {
      close(stream, .connectionLost)
      Unmanaged.passUnretained(stream).release()
    }
    let delegate = delegate
    self.delegate = nil
    delegate?.closed(error)
  }
}

// MARK: - Peers that stand still

extension HTTP2Session {
  private var watchInterval: Duration { min(limits.writeStallTimeout, limits.headerBlockTimeout, .seconds(10)) / 10 }

  /// Looks at a server's connection again and again while it has streams or unsent bytes.
  fileprivate func watch() {
    watchTimer = loop.schedule(after: watchInterval) { [self] in
      watchTimer = nil
      guard !isClosed, !cutWhatStalls(), streamCount > 0 || transport.unsentBytes > 0 else { return }
      watch()
    }
  }

  /// True when the connection was cut.
  private func cutWhatStalls() -> Bool {
    let headerLooks = headerStall.look(isWaiting: openHeaderBlock != 0, progress: Int(openHeaderBlock))
    let unsent = transport.unsentBytes
    let outputLooks = outputStall.look(isWaiting: unsent > 0, progress: framedBytes - unsent)
    let looksMax = (limits.writeStallTimeout / watchInterval).rounded(.up)
    if Double(headerLooks) > limits.headerBlockTimeout / watchInterval || Double(outputLooks) > looksMax {
      blame("stalled")
      transport.abort()
      return true
    }
    guard streamUnsentBytes > 0 else { return false }
    var isLogged = false
    var next = firstStream
    while let stream = next {
      next = stream.next
      let looks = stream.stall.look(isWaiting: stream.unsentBytes > 0, progress: stream.sentBytes)
      guard Double(looks) > looksMax else { continue }
      if !isLogged { Log.warning("http2_streams_stalled", ["peer": .text(transport.peerAddress.description)]) }
      isLogged = true
      stream.reset(.cancel)
    }
    return false
  }

  /// Accounts for what waits to be sent, in steps; a connection that takes the last of the budget is cut.
  fileprivate func budget() {
    guard let outputBudget else { return }
    let held = isClosed ? 0 : (transport.unsentBytes + streamUnsentBytes) & ~0xFFFF
    guard held != budgetedBytes else { return }
    let isWithin = outputBudget.add(held - budgetedBytes)
    budgetedBytes = held
    guard !isWithin else { return }
    blame("output_budget")
    transport.abort()
  }
}
