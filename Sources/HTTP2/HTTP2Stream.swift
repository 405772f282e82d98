internal import CNghttp2

/// One stream of a connection: what waits to be sent, and what the peer's window is owed. A server's streams may be of a
/// subclass, so that a call and its stream are one object.
///
/// Safety (`@unchecked Sendable`): confined to its session's loop; callers are on it, which `EventLoop` guarantees.
open class HTTP2Stream: @unchecked Sendable {
  package final let session: HTTP2Session
  package internal(set) final var id: Int32
  /// Told of what happens to it, until it is closed; a stream may be its own.
  package final var handler: (any HTTP2StreamHandler)?

  // The list of the session's open streams; it holds no reference, nghttp2's user data does.
  unowned(unsafe) final var previous: HTTP2Stream?
  unowned(unsafe) final var next: HTTP2Stream?

  /// The header list passed the advertised limit; the fields beyond were dropped.
  package internal(set) final var isHeaderListTooLarge = false
  final var headerBytes = 0
  final var unconsumedBytes = 0
  package internal(set) final var isClosed = false
  /// The peer has ended its side.
  package internal(set) final var isRemoteEnded = false

  /// A piece of the body that is made where it is framed, and its size.
  private final var maker: ((UnsafeMutableRawBufferPointer) -> Void)?
  private final var makerCount = 0
  private final var chunk: [UInt8] = []
  private final var offset = 0
  private final var waiting: [[UInt8]] = []
  private final var waitingHead = 0
  private final var isEnded = false
  private final var isDeferred = false
  private final var isAboveMark = false
  private final var trailers: PreparedHeaders?
  private final var extraTrailers: HeaderList?
  /// Bytes that wait to be framed.
  package private(set) final var unsentBytes = 0
  /// Bytes that were framed.
  private(set) final var sentBytes = 0
  final var stall = StallCounter()

  package init(session: HTTP2Session, id: Int32) {
    self.session = session
    self.id = id
  }

  /// Sends a response's header block; `isEnd` makes it the whole response.
  package final func respond(_ headers: HeaderList, isEnd: Bool) {
    guard !isClosed else { return }
    headers.withFields { fields, count in submitResponse(fields, count, isEnd) }
  }

  /// Sends a response's header block; a body follows.
  package final func respond(_ headers: PreparedHeaders) {
    guard !isClosed else { return }
    submitResponse(UnsafePointer(headers.fields.baseAddress), headers.fields.count, false)
  }

  private final func submitResponse(_ fields: UnsafePointer<nghttp2_nv>?, _ count: Int, _ isEnd: Bool) {
    if isEnd {
      nghttp2_submit_response(session.raw, id, fields, count, nil)
    } else {
      var provider = dataProvider
      nghttp2_submit_response(session.raw, id, fields, count, &provider)
    }
    session.scheduleFlush()
  }

  /// Queues a piece of the body.
  package final func write(_ bytes: [UInt8]) {
    guard !isClosed, !isEnded, !bytes.isEmpty else { return }
    unsentBytes += bytes.count
    session.streamUnsentBytes += bytes.count
    if offset == chunk.count {
      chunk = bytes
      offset = 0
    } else {
      waiting.append(bytes)
    }
    if unsentBytes > session.limits.streamUnsentBytesMax { isAboveMark = true }
    resume()
  }

  /// Queues a piece of `count` bytes that `make` writes when it is framed, straight into the frame if it fits. Once, and
  /// before any other piece.
  package final func write(count: Int, _ make: @escaping (UnsafeMutableRawBufferPointer) -> Void) {
    guard !isClosed, !isEnded, count > 0 else { return }
    precondition(unsentBytes == 0 && maker == nil)
    maker = make
    makerCount = count
    unsentBytes += count
    session.streamUnsentBytes += count
    if unsentBytes > session.limits.streamUnsentBytesMax { isAboveMark = true }
    resume()
  }

  /// Makes the piece that waits to be made: in `output`, else in an array that is sent by and by.
  private final func make(_ output: UnsafeMutableRawBufferPointer) -> Int {
    guard let maker else { return 0 }
    self.maker = nil
    if makerCount <= output.count {
      maker(UnsafeMutableRawBufferPointer(rebasing: output[..<makerCount]))
      return makerCount
    }
    chunk = [UInt8](unsafeUninitializedCapacity: makerCount) { buffer, count in
      maker(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<makerCount]))
      count = makerCount
    }
    return 0
  }

  /// Whether a writer should wait for `drained`.
  package final var isFull: Bool { isAboveMark && !isClosed }

  /// Ends the body, with these trailers at a server.
  package final func finish(_ trailers: PreparedHeaders) {
    guard !isClosed, !isEnded else { return }
    self.trailers = trailers
    isEnded = true
    resume()
  }

  /// Ends the body, with these trailers at a server, without any at a client.
  package final func finish(_ trailers: HeaderList? = nil) {
    guard !isClosed, !isEnded else { return }
    extraTrailers = trailers
    isEnded = true
    resume()
  }

  /// Ends the stream at once.
  package final func reset(_ code: HTTP2ErrorCode) {
    guard !isClosed else { return }
    nghttp2_submit_rst_stream(session.raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
    session.scheduleFlush()
  }

  /// Ends the stream without a word to its handler, which hears nothing more.
  package final func letGo() {
    handler = nil
    reset(.cancel)
  }

  /// Gives `count` received bytes back to the peer's window.
  package final func consume(_ count: Int) {
    guard count > 0, !isClosed else { return }
    unconsumedBytes -= count
    nghttp2_session_consume(session.raw, id, count)
    session.scheduleFlush()
  }

  private final func resume() {
    if isDeferred {
      isDeferred = false
      nghttp2_session_resume_data(session.raw, id)
    }
    session.scheduleFlush()
  }

  /// Fills a DATA frame.
  fileprivate final func fill(_ output: UnsafeMutableRawBufferPointer, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
    var written = make(output)
    while written < output.count {
      if offset == chunk.count, !advance() { break }
      let count = min(chunk.count - offset, output.count - written)
      chunk.withUnsafeBytes { bytes in
        UnsafeMutableRawBufferPointer(rebasing: output[written..<(written + count)])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)]))
      }
      offset += count
      written += count
    }
    unsentBytes -= written
    sentBytes += written
    session.streamUnsentBytes -= written
    if isAboveMark, unsentBytes <= session.limits.streamUnsentBytesMax / 2 {
      isAboveMark = false
      handler?.drained()
    }
    guard unsentBytes == 0 else { return written }
    if isEnded {
      flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
      submitTrailers(flags)
    } else if written == 0 {
      isDeferred = true
      return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    }
    return written
  }

  /// Takes the next waiting piece; false when there is none.
  private final func advance() -> Bool {
    offset = 0
    guard waitingHead < waiting.count else {
      chunk = []
      waiting.removeAll(keepingCapacity: true)
      waitingHead = 0
      return false
    }
    chunk = waiting[waitingHead]
    waiting[waitingHead] = []
    waitingHead += 1
    return true
  }

  private final func submitTrailers(_ flags: UnsafeMutablePointer<UInt32>) {
    if let trailers {
      flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
      nghttp2_submit_trailer(session.raw, id, trailers.fields.baseAddress, trailers.fields.count)
    } else if let extraTrailers {
      flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
      _ = extraTrailers.withFields { fields, count in nghttp2_submit_trailer(session.raw, id, fields, count) }
    }
  }

  /// The source of this stream's DATA frames.
  /// Safety: nghttp2 calls it only while the stream is open, and an open stream is retained as nghttp2's user data.
  final var dataProvider: nghttp2_data_provider {
    nghttp2_data_provider(
      source: nghttp2_data_source(ptr: Unmanaged.passUnretained(self).toOpaque()),
      read_callback: { _, _, buffer, length, flags, source, _ in
        guard let stream = source?.pointee.ptr, let buffer, let flags else {
          return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
        }
        return Unmanaged<HTTP2Stream>.fromOpaque(stream)._withUnsafeGuaranteedRef {
          $0.fill(UnsafeMutableRawBufferPointer(start: buffer, count: length), flags)
        }
      })
  }
}
