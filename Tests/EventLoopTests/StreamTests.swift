import EventLoop
import Glibc
import Primitives
import Testing

struct StreamTests {
  private let group = EventLoopGroup(count: 1)
  private var loop: EventLoop { group.loops[0] }

  @Test("EventLoop a plaintext stream carries bytes both ways and says each end once")
  func echo() async throws {
    let server = try EchoServer(group: group)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    let recorder = StreamRecorder()
    await on(loop) {
      stream.delegate = recorder
      stream.write(Array("hello".utf8))
    }
    #expect(await recorder.bytes(5) == Array("hello".utf8))
    let accepted = try #require(await server.accepted())
    #expect(accepted.stream.peerAddress.isLoopback)
    await on(loop) {
      stream.close()
      stream.close()
      stream.write([1])
    }
    #expect(await recorder.next() == .closed(nil))
    #expect(await accepted.recorder.next() == .established)
    #expect(await accepted.recorder.next() == .closed(nil))
    await on(loop) {
      stream.abort()
      accepted.stream.abort()
    }
    #expect(await on(loop) { [recorder.closedCount, accepted.recorder.closedCount] } == [1, 1])
    await server.listener.close()
    await group.shutdown()
  }

  @Test("EventLoop what is written before the delegate is set, and what arrives before, is not lost")
  func nothingIsLostBeforeTheDelegate() async throws {
    let server = try EchoServer(group: group)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    await on(loop) { stream.write([1, 2, 3]) }
    let accepted = try #require(await server.accepted())
    await on(loop) { accepted.stream.close() }
    let recorder = StreamRecorder()
    await on(loop) { stream.delegate = recorder }
    #expect(await recorder.next() == .established)
    await group.shutdown()
  }

  @Test("EventLoop close sends all that is buffered first")
  func closeFlushes() async throws {
    let server = try EchoServer(group: group, echoes: false)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    let accepted = try #require(await server.accepted())
    let payload = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    await on(loop) {
      stream.delegate = StreamRecorder()
      stream.write(payload)
      stream.close()
    }
    #expect(await accepted.recorder.bytes(.max) == payload)
    await group.shutdown()
  }

  @Test("EventLoop unsent bytes grow while the peer does not read, and drained follows when it has")
  func backPressure() async throws {
    let server = try EchoServer(group: group, echoes: false)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    let accepted = try #require(await server.accepted())
    let recorder = StreamRecorder()
    let size = 16 << 20
    await on(loop) {
      accepted.stream.pauseReading()
      stream.delegate = recorder
      stream.write([UInt8](repeating: 7, count: size))
    }
    await on(loop) {}
    #expect(await on(loop) { stream.unsentBytes } > 0)
    await on(loop) { accepted.stream.resumeReading() }
    #expect(await recorder.next() == .established)
    #expect(await recorder.next() == .drained)
    #expect(await on(loop) { stream.unsentBytes } == 0)
    #expect(await accepted.recorder.bytes(size).count == size)
    await group.shutdown()
  }

  @Test("EventLoop a paused stream hands nothing over until it is resumed")
  func pause() async throws {
    let server = try EchoServer(group: group, echoes: false)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    let accepted = try #require(await server.accepted())
    await on(loop) {
      accepted.stream.pauseReading()
      stream.delegate = StreamRecorder()
      stream.write([1, 2])
    }
    let resumed = Box(false)
    await on(loop) { [resumed = UncheckedBox(resumed)] in
      accepted.recorder.onReceived = { _ in #expect(resumed.box.value) }
    }
    for _ in 0..<20 { await on(loop) {} }
    await on(loop) { [resumed = UncheckedBox(resumed)] in
      resumed.box.value = true
      accepted.stream.resumeReading()
    }
    #expect(await accepted.recorder.bytes(2) == [1, 2])
    await group.shutdown()
  }

  @Test("EventLoop a refused connection is UNAVAILABLE with the cause")
  func refused() async throws {
    let server = try EchoServer(group: group)
    await server.listener.close()
    let error = await #expect(throws: ServiceError.self) {
      try await ByteStream.connect(to: server.address, on: loop)
    }
    #expect(error?.code == .unavailable)
    #expect(error?.cause as? StreamError == .system(call: "connect", code: ECONNREFUSED))
    await group.shutdown()
  }

  @Test("EventLoop a connection that does not come about in time is UNAVAILABLE")
  func timesOut() async throws {
    // 192.0.2.0/24 is for documentation and never answers; a host without a route says so at once.
    let error = await #expect(throws: ServiceError.self) {
      try await ByteStream.connect(to: .v4(0xc000_0201, port: 9), on: loop, timeout: .milliseconds(20))
    }
    #expect(error?.code == .unavailable)
    await group.shutdown()
  }

  @Test("EventLoop abort loses what is unsent and reports aborted, outside the call")
  func abort() async throws {
    let server = try EchoServer(group: group, echoes: false)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    let recorder = StreamRecorder()
    let during = await on(loop) {
      stream.delegate = recorder
      stream.write([UInt8](repeating: 1, count: 100))
      stream.abort()
      return recorder.closedCount
    }
    #expect(during == 0)
    var last: StreamRecorder.Event?
    while last != .closed(.aborted) { last = await recorder.next() }
    await group.shutdown()
  }

  @Test("EventLoop a stream may be ended while it is being accepted", arguments: [true, false])
  func endedAtOnce(_ isAborted: Bool) async throws {
    let recorder = StreamRecorder()
    let listener = try Listener.listen(on: .v4(0x7f00_0001, port: 0), group: group) { stream in
      stream.delegate = recorder
      stream.write([1, 2, 3])
      if isAborted { stream.abort() } else { stream.close() }
    }
    let stream = try await ByteStream.connect(to: .v4(0x7f00_0001, port: UInt16(listener.port)), on: loop)
    let client = StreamRecorder()
    await on(loop) { stream.delegate = client }
    #expect(await client.bytes(.max) == (isAborted ? [] : [1, 2, 3]))
    #expect(await recorder.next() == .closed(isAborted ? .aborted : nil))
    await group.shutdown()
  }

  @Test("EventLoop listeners and streams can be ended after their loop")
  func endedLate() async throws {
    let server = try EchoServer(group: group, echoes: false)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    await group.shutdown()
    await server.listener.close()
    await withCheckedContinuation { continuation in
      loop.execute {
        stream.close()
        stream.abort()
        stream.loop.execute { continuation.resume() }
      }
    }
  }

  @Test("EventLoop the end of the loop closes its streams")
  func loopEnd() async throws {
    let server = try EchoServer(group: group, echoes: false)
    let stream = try await ByteStream.connect(to: server.address, on: loop)
    let recorder = StreamRecorder()
    await on(loop) { stream.delegate = recorder }
    #expect(await recorder.next() == .established)
    await group.shutdown()
    #expect(await recorder.next() == .closed(.aborted))
  }
}

/// Safety: what is inside is touched on one loop only.
struct UncheckedBox<Value>: @unchecked Sendable {
  let box: Box<Value>
  init(_ box: Box<Value>) { self.box = box }
}
