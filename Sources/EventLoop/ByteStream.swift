internal import CLinux
internal import Glibc
internal import Primitives

/// What a stream tells its owner, always on the stream's loop.
package protocol ByteStreamDelegate: AnyObject {
  /// The stream can be read and written: at once for plaintext, after the handshake for TLS.
  func established(_ stream: ByteStream)
  /// `bytes` are valid during the call only.
  func received(_ bytes: UnsafeRawBufferPointer, _ stream: ByteStream)
  /// The output buffer became empty after `unsentBytes` had been above `highMark`.
  func drained(_ stream: ByteStream)
  /// The end, exactly once; nothing is reported after it. Nil after `close()` and after the peer's orderly end.
  func closed(_ error: (any Error)?, _ stream: ByteStream)
}

/// One connected socket, plaintext or TLS, that belongs to one loop.
///
/// Nothing is read and nothing reported before there is a delegate; `established` follows the assignment, or is not
/// called at all when the handshake fails (`closed` is). What is written before that is kept and sent.
///
/// Safety: `@unchecked Sendable` so that a reference may travel; every method and variable is loop thread only
/// (checked by `assertCurrent` in debug builds), except `loop` and `peerAddress`, which never change.
package final class ByteStream: EventHandler, @unchecked Sendable {
  enum State: Int, Comparable {
    case connecting, handshaking, open
    /// `close()` was called and bytes are left to send.
    case closing
    /// All is sent and our side is shut; waiting for the peer's end, so that it is not reset while it still reads.
    case lingering
    case closed

    static func < (left: State, right: State) -> Bool { left.rawValue < right.rawValue }
  }

  private static let lingerSeconds = 2
  private static let closeSeconds = 10

  package let loop: EventLoop
  package let peerAddress: SocketAddress
  /// The single URI name of the certificate that the peer proved, such as `spiffe://afterthoughts/vault`.
  package private(set) var peerIdentity: String?
  /// The protocol agreed on by ALPN, such as `h2`; nil for plaintext.
  package private(set) var negotiatedProtocol: String?
  /// `drained` is reported when the buffer empties after having held more than this.
  package var highMark = 256 * 1024

  private let descriptor: Int32
  private let tls: TLSSession?
  private let expected: PeerName?
  private(set) var state: State
  private var output = OutputBuffer()
  private var watched: Interest = []
  private var timer: LoopTimer?
  /// Told once whether the stream opened; used by `connect`, before there is a delegate.
  var onOpened: ((StreamError?) -> Void)?
  private var pendingEnd: (any Error)??
  private var isStarted = false
  private var isAnnounced = false
  private var isReadingPaused = false
  private var isFlushAsked = false
  private var wasAboveMark = false
  /// The socket (or TLS) cannot take more until it is writable (or, for TLS, readable).
  private var isSendBlocked = false
  private var handshakeWantsWrite = false

  /// Takes over `descriptor`, which must be non-blocking. `start` must follow on the loop.
  init(
    descriptor: Int32, loop: EventLoop, peer: SocketAddress, tls: TLSSession?, expected: PeerName?, state: State
  ) {
    self.descriptor = descriptor
    self.loop = loop
    peerAddress = peer
    self.tls = tls
    self.expected = expected
    self.state = state
  }

  /// Kept until the stream has closed.
  package var delegate: (any ByteStreamDelegate)? {
    didSet {
      guard delegate != nil, isStarted, !isAnnounced else { return }
      loop.executeHere { self.announce() }
    }
  }

  package var isClosed: Bool { state >= .closing }

  /// Bytes written and not yet given to the system.
  package var unsentBytes: Int { output.count }

  // MARK: Writing

  /// Copies `bytes` behind what is unsent; sent at the end of the turn, then as the peer takes it. Ignored after the
  /// end and after `close()`.
  package func write(_ bytes: UnsafeRawBufferPointer) {
    loop.assertCurrent()
    guard state < .closing else { return }
    output.append(bytes, loop.outputStorage)
    if output.count > highMark { wasAboveMark = true }
    askForFlush()
  }

  /// `write` for an array.
  package func write(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { write($0) }
  }

  private func askForFlush() {
    guard !isFlushAsked, !isSendBlocked, state == .open || state == .closing else { return }
    isFlushAsked = true
    loop.flushAfterTurn(self)
  }

  /// Called by the loop at the end of a turn.
  func flush() {
    isFlushAsked = false
    guard state == .open || state == .closing, !isSendBlocked else { return }
    while output.count > 0 {
      switch send(output.bytes) {
      case .done(let sent):
        output.consume(sent, loop.outputStorage)
      case .wantsRead, .wantsWrite:
        isSendBlocked = true
        watch()
        return
      case .ended:
        finish(StreamError.truncated)
        return
      case .failed(let error):
        finish(error)
        return
      }
    }
    if state == .closing {
      endSending()
    } else if wasAboveMark {
      wasAboveMark = false
      delegate?.drained(self)
    }
  }

  private func send(_ bytes: UnsafeRawBufferPointer) -> TLSSession.Outcome {
    if let tls { return tls.write(bytes) }
    while true {
      let sent = Glibc.send(descriptor, bytes.baseAddress, bytes.count, linux_send_flags)
      if sent >= 0 { return .done(sent) }
      if errno == EINTR { continue }
      return errno == EAGAIN || errno == EWOULDBLOCK ? .wantsWrite : .failed(.last("send"))
    }
  }

  // MARK: Reading

  /// Stops `received` until `resumeReading`; what has arrived stays with the system and slows the peer.
  package func pauseReading() {
    loop.assertCurrent()
    guard !isReadingPaused else { return }
    isReadingPaused = true
    watch()
  }

  package func resumeReading() {
    loop.assertCurrent()
    guard isReadingPaused else { return }
    isReadingPaused = false
    watch()
    // The TLS layer may hold bytes that the system no longer reports.
    if tls != nil { loop.executeHere { self.receive() } }
  }

  /// After `close()` what still comes is read and dropped.
  private var mayReceive: Bool {
    switch state {
    case .connecting, .handshaking, .closed: false
    case .open: isAnnounced && !isReadingPaused
    case .closing, .lingering: true
    }
  }

  private func receive() {
    guard mayReceive else { return }
    // After our closing alert only the peer's end matters.
    if let tls, state != .lingering { receive(tls) } else { receivePlain() }
  }

  private func receivePlain() {
    let buffer = loop.receiveBuffer
    let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
    if count > 0 {
      deliver(count)
    } else if count == 0 {
      finish(nil)
    } else if errno != EAGAIN, errno != EWOULDBLOCK, errno != EINTR {
      finish(state == .lingering ? nil : StreamError.last("recv"))
    }
  }

  private func receive(_ tls: TLSSession) {
    let buffer = loop.receiveBuffer
    var filled = 0
    while mayReceive {
      let outcome = tls.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      switch outcome {
      case .done(let count):
        filled += count
        if filled == buffer.count {
          deliver(filled)
          // The rest waits a turn, so that one stream does not hold the loop.
          if state < .closed { loop.executeHere { self.receive() } }
          return
        }
      case .wantsRead, .wantsWrite:
        if filled > 0 { deliver(filled) }
        return
      case .ended, .failed:
        if filled > 0 { deliver(filled) }
        if case .failed(let error) = outcome, state < .closing { finish(error) } else { finish(nil) }
        return
      }
    }
  }

  private func deliver(_ count: Int) {
    guard state == .open else { return }
    delegate?.received(UnsafeRawBufferPointer(rebasing: loop.receiveBuffer[..<count]), self)
  }

  // MARK: Ending

  /// Sends what is buffered (and TLS's closing alert), then ends; reading stops at once. A peer that does not take the
  /// rest within 10 s is cut off.
  package func close() {
    loop.assertCurrent()
    switch state {
    case .connecting, .handshaking:
      finish(nil, deferred: true)
    case .open:
      state = .closing
      arm(seconds: Self.closeSeconds) { $0.finish(StreamError.timedOut) }
      askForFlush()
      watch()
    case .closing, .lingering, .closed:
      break
    }
  }

  /// Ends now; what is unsent is lost. `closed` follows with `StreamError.aborted`, outside this call.
  package func abort() {
    loop.assertCurrent()
    finish(StreamError.aborted, deferred: true)
  }

  package func loopEnds() {
    finish(StreamError.aborted)
  }

  private func endSending() {
    tls?.close()
    shutdown(descriptor, Int32(SHUT_WR))
    state = .lingering
    arm(seconds: Self.lingerSeconds) { $0.finish(nil) }
    watch()
    report(nil)
  }

  private func finish(_ error: (any Error)?, deferred: Bool = false) {
    guard state != .closed else { return }
    state = .closed
    timer?.cancel()
    timer = nil
    if isStarted { loop.deregister(descriptor) }
    tls?.free()
    Glibc.close(descriptor)
    output.free(loop.outputStorage)
    if let onOpened {
      self.onOpened = nil
      onOpened(error as? StreamError ?? .aborted)
    }
    if deferred { loop.executeHere { self.report(error) } } else { report(error) }
  }

  /// Tells the delegate of the end, once, now or when there is one.
  private func report(_ error: (any Error)?) {
    guard let delegate else {
      if pendingEnd == nil, !isAnnounced { pendingEnd = .some(error) }
      return
    }
    isAnnounced = true
    self.delegate = nil
    delegate.closed(error, self)
  }

  private func arm(seconds: Int, _ work: @escaping (ByteStream) -> Void) {
    timer?.cancel()
    timer = loop.schedule(after: .seconds(seconds)) { work(self) }
  }

  // MARK: Starting

  /// Loop thread only. Registers the descriptor and begins the handshake; `timeout` covers all until established.
  func start(timeout: Duration?) {
    // The owner may have ended it already.
    guard state != .closed else { return }
    isStarted = true
    watched = state == .connecting ? .writable : .readable
    loop.register(descriptor, watched, handler: self)
    if let timeout, state < .open {
      timer = loop.schedule(after: timeout) { self.finish(StreamError.timedOut) }
    }
    switch state {
    case .open: establish()
    case .handshaking: shakeHands()
    default: break
    }
  }

  private func connected() {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) != 0 { code = errno }
    guard code == 0 else { return finish(StreamError.system(call: "connect", code: code)) }
    if tls != nil {
      state = .handshaking
      shakeHands()
    } else {
      establish()
    }
  }

  private func shakeHands() {
    guard let tls else { return }
    switch tls.handshake() {
    case .done:
      peerIdentity = tls.peerIdentity
      negotiatedProtocol = tls.negotiatedProtocol
      // RFC 9113 §3.3: HTTP/2 over TLS is agreed on, not assumed.
      guard negotiatedProtocol != nil else { return finish(StreamError.tls("no protocol agreed on")) }
      if case .identity(let name) = expected, peerIdentity != name {
        return finish(StreamError.wrongIdentity(peerIdentity ?? "unnamed"))
      }
      establish()
      receive()
    case .wantsRead:
      handshakeWantsWrite = false
      watch()
    case .wantsWrite:
      handshakeWantsWrite = true
      watch()
    case .ended:
      finish(StreamError.truncated)
    case .failed(let error):
      finish(error)
    }
  }

  private func establish() {
    state = .open
    timer?.cancel()
    timer = nil
    if let onOpened {
      self.onOpened = nil
      onOpened(nil)
    }
    announce()
    watch()
    if output.count > 0 { askForFlush() }
  }

  private func announce() {
    guard let delegate, !isAnnounced else { return }
    if let error = pendingEnd {
      report(error)
    } else if state == .open {
      isAnnounced = true
      delegate.established(self)
      if state < .closed { watch() }
      // What came with the handshake lies in the TLS layer.
      if tls != nil { loop.executeHere { self.receive() } }
    }
  }

  // MARK: Readiness

  private func watch() {
    guard isStarted, state != .closed else { return }
    var wanted: Interest = []
    switch state {
    case .connecting: wanted = .writable
    case .handshaking: wanted = handshakeWantsWrite ? .writable : .readable
    case .open, .closing, .lingering, .closed: if mayReceive { wanted = .readable }
    }
    if isSendBlocked { wanted.insert(.writable) }
    guard wanted != watched else { return }
    watched = wanted
    loop.modify(descriptor, wanted)
  }

  package func ready(_ events: Interest) {
    switch state {
    case .connecting: return connected()
    case .handshaking: return shakeHands()
    case .open, .closing, .lingering: break
    case .closed: return
    }
    if events.contains(.readable) {
      if mayReceive {
        receive()
      } else if events.contains(.writable), !isSendBlocked {
        // Nothing is watched, so this is the peer's reset.
        return finish(lastError())
      }
    }
    if events.contains(.writable), isSendBlocked, state < .lingering {
      isSendBlocked = false
      flush()
      watch()
    }
  }

  private func lastError() -> StreamError {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
    return .system(call: "recv", code: code == 0 ? ECONNRESET : code)
  }
}
