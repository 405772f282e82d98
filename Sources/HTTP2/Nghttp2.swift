internal import CNghttp2
internal import Primitives

/// The C side: how sessions are made and what nghttp2 calls back.
///
/// Safety: nghttp2 passes each callback the user data that `HTTP2Session.init` set, and calls back only from within
/// `nghttp2_session_mem_recv` and `nghttp2_session_mem_send`, which a live session calls on its loop.
enum Nghttp2 {
  /// Where the first entry of a SETTINGS frame begins.
  static let firstSettingOffset = 9
  static let drainPing: [UInt8] = Array("goodbye!".utf8)

  static func makeSession(_ role: HTTP2Session.Role, _ limits: HTTP2Limits) -> OpaquePointer {
    var option: OpaquePointer?
    nghttp2_option_new(&option)
    nghttp2_option_set_no_auto_window_update(option, 1)
    nghttp2_option_set_no_closed_streams(option, 1)
    nghttp2_option_set_max_outbound_ack(option, 1000)
    nghttp2_option_set_max_settings(option, 32)
    nghttp2_option_set_peer_max_concurrent_streams(option, 100)
    defer { nghttp2_option_del(option) }
    var session: OpaquePointer?
    switch role {
    case .server: nghttp2_session_server_new2(&session, callbacks, nil, option)
    case .client: nghttp2_session_client_new2(&session, callbacks, nil, option)
    }
    guard let session else { preconditionFailure("out of memory") }
    return session
  }

  // Safety: built once, read-only afterwards.
  nonisolated(unsafe) private static let callbacks: OpaquePointer? = {
    var callbacks: OpaquePointer?
    nghttp2_session_callbacks_new(&callbacks)
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, beginHeaders)
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header)
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frameReceived)
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, invalidFrame)
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, dataChunk)
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, streamClosed)
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frameSent)
    return callbacks
  }()

  private static let stop = Int32(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
  private static let resetStream = Int32(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)

  @inline(__always)
  private static func with(
    _ userData: UnsafeMutableRawPointer?, _ body: (HTTP2Session) -> Int32
  ) -> Int32 {
    guard let userData else { return stop }
    return Unmanaged<HTTP2Session>.fromOpaque(userData)._withUnsafeGuaranteedRef {
      $0.isClosed || $0.isTerminating ? stop : body($0)
    }
  }

  /// Safety: a stream's user data is the retained `HTTP2Stream` until `streamClosed`.
  @inline(__always)
  private static func withStream(_ session: HTTP2Session, _ id: Int32, _ body: (HTTP2Stream) -> Void) {
    guard let pointer = nghttp2_session_get_stream_user_data(session.raw, id) else { return }
    Unmanaged<HTTP2Stream>.fromOpaque(pointer)._withUnsafeGuaranteedRef { body($0) }
  }

  private static let beginHeaders: nghttp2_on_begin_headers_callback = { raw, frame, userData in
    with(userData) { session in
      guard session.role == .server, let frame, frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
      session.openHeaderBlock = frame.pointee.hd.stream_id
      let id = frame.pointee.hd.stream_id
      guard session.streamCount < session.limits.streamsMax, let stream = session.delegate?.accept(session, id) else {
        nghttp2_submit_rst_stream(raw, 0, id, HTTP2ErrorCode.refusedStream.rawValue)
        return 0
      }
      nghttp2_session_set_stream_user_data(raw, stream.id, Unmanaged.passRetained(stream).toOpaque())
      session.link(stream)
      return 0
    }
  }

  private static let header: nghttp2_on_header_callback = {
    _, frame, name, nameLength, value, valueLength, _, userData in
    with(userData) { session in
      guard let frame, let name, let value else { return 0 }
      var result: Int32 = 0
      withStream(session, frame.pointee.hd.stream_id) { stream in
        stream.headerBytes += nameLength + valueLength + 32
        if stream.headerBytes > session.limits.headerListBytesMax {
          stream.isHeaderListTooLarge = true
          if stream.headerBytes > session.limits.headerListBytesHard { result = resetStream }
          return
        }
        stream.handler?.header(
          UnsafeBufferPointer(start: name, count: nameLength).span,
          UnsafeBufferPointer(start: value, count: valueLength).span)
      }
      return result
    }
  }

  private static let dataChunk: nghttp2_on_data_chunk_recv_callback = { _, _, id, bytes, count, userData in
    with(userData) { session in
      var isHandled = false
      withStream(session, id) { stream in
        isHandled = true
        stream.unconsumedBytes += count
        if let handler = stream.handler {
          handler.data(UnsafeBufferPointer(start: bytes, count: count).span)
        } else {
          stream.consume(count)
        }
      }
      if !isHandled { nghttp2_session_consume(session.raw, id, count) }
      return 0
    }
  }

  private static let frameReceived: nghttp2_on_frame_recv_callback = { _, frame, userData in
    with(userData) { session in
      guard let frame else { return 0 }
      let head = frame.pointee.hd
      let isEnd = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
      switch UInt32(head.type) {
      case NGHTTP2_HEADERS.rawValue:
        session.openHeaderBlock = 0
        withStream(session, head.stream_id) { stream in
          stream.isRemoteEnded = isEnd
          stream.handler?.headersEnded(isEnd: isEnd)
        }
      case NGHTTP2_DATA.rawValue:
        if isEnd {
          withStream(session, head.stream_id) { stream in
            stream.isRemoteEnded = true
            stream.handler?.ended()
          }
        } else if head.length <= frame.pointee.data.padlen {
          return session.permits(.emptyData) ? 0 : stop
        }
      default: return control(session, frame, head)
      }
      return 0
    }
  }

  private static func control(
    _ session: HTTP2Session, _ frame: UnsafePointer<nghttp2_frame>, _ head: nghttp2_frame_hd
  ) -> Int32 {
    let isAck = head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
    switch UInt32(head.type) {
    case NGHTTP2_PING.rawValue:
      guard isAck else { return session.permitsPing() ? 0 : stop }
      var payload = frame.pointee.ping.opaque_data
      withUnsafeBytes(of: &payload) { bytes in
        if let start = bytes.bindMemory(to: UInt8.self).baseAddress { session.pingAnswered(start) }
      }
    case NGHTTP2_SETTINGS.rawValue:
      if isAck {
        session.areSettingsKnown = true
        return 0
      }
      session.peerSettled()
      return session.permits(.settings) ? 0 : stop
    case NGHTTP2_RST_STREAM.rawValue: return session.permits(.resetReceived) ? 0 : stop
    case NGHTTP2_WINDOW_UPDATE.rawValue: return session.permits(.windowUpdate) ? 0 : stop
    case NGHTTP2_PRIORITY.rawValue: return session.permits(.priority) ? 0 : stop
    case NGHTTP2_GOAWAY.rawValue:
      let goAway = frame.pointee.goaway
      let reason = UnsafeBufferPointer(start: goAway.opaque_data, count: goAway.opaque_data_len)
      session.delegate?.goneAway(HTTP2ErrorCode(rawValue: goAway.error_code), String(decoding: reason, as: UTF8.self))
    default: break
    }
    return 0
  }

  /// nghttp2 has answered a frame that breaks the protocol; a peer may not make it do so without end.
  private static let invalidFrame: nghttp2_on_invalid_frame_recv_callback = { _, frame, _, userData in
    with(userData) { session in session.invalidFrameReceived() ? 0 : stop }
  }

  /// Also called for a request that was never sent, because it was reset before or because the peer takes none any more.
  private static let streamClosed: nghttp2_on_stream_close_callback = { raw, id, code, userData in
    guard let userData, let pointer = nghttp2_session_get_stream_user_data(raw, id) else { return 0 }
    return Unmanaged<HTTP2Session>.fromOpaque(userData)._withUnsafeGuaranteedRef { session in
      if session.openHeaderBlock == id { session.openHeaderBlock = 0 }
      // A closed session has given its streams up already.
      guard !session.isClosed else { return 0 }
      let stream = Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeRetainedValue()
      session.close(stream, HTTP2ErrorCode(rawValue: code))
      return 0
    }
  }

  private static let frameSent: nghttp2_on_frame_send_callback = { raw, frame, userData in
    guard let userData, let frame else { return 0 }
    return Unmanaged<HTTP2Session>.fromOpaque(userData)._withUnsafeGuaranteedRef { session in
      guard !session.isClosed else { return 0 }
      let head = frame.pointee.hd
      switch UInt32(head.type) {
      case NGHTTP2_DATA.rawValue: session.guardState.dataSent()
      case NGHTTP2_RST_STREAM.rawValue:
        session.resetSent(HTTP2ErrorCode(rawValue: frame.pointee.rst_stream.error_code))
      case NGHTTP2_GOAWAY.rawValue:
        // What was not blamed before broke the protocol.
        if frame.pointee.goaway.error_code != 0 { session.blame("protocol_error") }
        session.goAwaySent()
      case NGHTTP2_HEADERS.rawValue:
        session.guardState.answerSent()
        guard session.role == .server, head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 else { return 0 }
        // The answer is whole: a client that still sends is told to stop, without an error.
        withStream(session, head.stream_id) { stream in
          if !stream.isRemoteEnded { nghttp2_submit_rst_stream(raw, 0, head.stream_id, 0) }
        }
      default: break
      }
      return 0
    }
  }
}
