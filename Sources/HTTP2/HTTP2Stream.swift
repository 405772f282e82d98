internal import CNghttp2

/// One stream of a connection: what waits to be sent, and what the peer's window is owed.
///
/// Safety (`@unchecked Sendable`): confined to its session's loop; callers are on it, which `EventLoop` guarantees.
package final class HTTP2Stream: @unchecked Sendable {
  package let session: HTTP2Session
  package internal(set) var id: Int32
  var handler: (any HTTP2StreamHandler)?

  // The list of the session's open streams; it holds no reference, nghttp2's user data does.
  unowned(unsafe) var previous: HTTP2Stream?
  unowned(unsafe) var next: HTTP2Stream?

  /// The header list passed the advertised limit; the fields beyond were dropped.
  package internal(set) var isHeaderListTooLarge = false
  var headerBytes = 0
  var unconsumedBytes = 0
  package internal(set) var isClosed = false
  /// The peer has ended its side.
  package internal(set) var isRemoteEnded = false

  private var chunk: [UInt8] = []
  private var offset = 0
  private var waiting: [[UInt8]] = []
  private var waitingHead = 0
  private var isEnded = false
  private var isDeferred = false
  private var isAboveMark = false
  private var trailers: PreparedHeaders?
  private var extraTrailers: HeaderList?
  /// Bytes that wait to be framed.
  package private(set) var unsentBytes = 0
  /// Bytes that were framed.
  private(set) var sentBytes = 0
  var stall = StallCounter()

  init(session: HTTP2Session, id: Int32) {
    self.session = session
    self.id = id
  }

  /// Sends a response's header block; `isEnd` makes it the whole response.
  package func respond(_ headers: HeaderList, isEnd: Bool) {
    guard !isClosed else { return }
    headers.withFields { fields, count in submitResponse(fields, count, isEnd) }
  }

  /// Sends a response's header block; a body follows.
  package func respond(_ headers: PreparedHeaders) {
    guard !isClosed else { return }
    submitResponse(UnsafePointer(headers.fields.baseAddress), headers.fields.count, false)
  }

  private func submitResponse(_ fields: UnsafePointer<nghttp2_nv>?, _ count: Int, _ isEnd: Bool) {
    if isEnd {
      nghttp2_submit_response(session.raw, id, fields, count, nil)
    } else {
      var provider = dataProvider
      nghttp2_submit_response(session.raw, id, fields, count, &provider)
    }
    session.scheduleFlush()
  }

  /// Queues a piece of the body.
  package func write(_ bytes: [UInt8]) {
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

  /// Whether a writer should wait for `drained`.
  package var isFull: Bool { isAboveMark && !isClosed }

  /// Ends the body, with these trailers at a server.
  package func finish(_ trailers: PreparedHeaders) {
    guard !isClosed, !isEnded else { return }
    self.trailers = trailers
    isEnded = true
    resume()
  }

  /// Ends the body, with these trailers at a server, without any at a client.
  package func finish(_ trailers: HeaderList? = nil) {
    guard !isClosed, !isEnded else { return }
    extraTrailers = trailers
    isEnded = true
    resume()
  }

  /// Ends the stream at once.
  package func reset(_ code: HTTP2ErrorCode) {
    guard !isClosed else { return }
    nghttp2_submit_rst_stream(session.raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
    session.scheduleFlush()
  }

  /// Ends the stream without a word to its handler, which hears nothing more.
  package func letGo() {
    handler = nil
    reset(.cancel)
  }

  /// Gives `count` received bytes back to the peer's window.
  package func consume(_ count: Int) {
    guard count > 0, !isClosed else { return }
    unconsumedBytes -= count
    nghttp2_session_consume(session.raw, id, count)
    session.scheduleFlush()
  }

  private func resume() {
    if isDeferred {
      isDeferred = false
      nghttp2_session_resume_data(session.raw, id)
    }
    session.scheduleFlush()
  }

  /// Fills a DATA frame.
  fileprivate func fill(_ output: UnsafeMutableRawBufferPointer, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
    var written = 0
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
  private func advance() -> Bool {
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

  private func submitTrailers(_ flags: UnsafeMutablePointer<UInt32>) {
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
  var dataProvider: nghttp2_data_provider {
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
