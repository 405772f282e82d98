import EventLoop
import Primitives
import Synchronization
import Testing

@testable import HTTP2
@testable import RPC

/// Peers that fall silent, stand still or talk too much.
@Suite struct KeepaliveTests {
  private static let endless = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in
    try await untilCancelled()
  }

  private static func run(
    _ server: ServerConfiguration, _ channel: ChannelConfiguration, timeout: Duration
  ) async throws -> ServiceError? {
    let group = EventLoopGroup(count: 1)
    let server = Server(configuration: server, services: [TestService(handlers: [endless])], group: group)
    try server.start()
    let channel = Channel(target: "127.0.0.1:\(server.port)", group: group, configuration: channel)
    let error = await failure {
      let _: Note = try await channel.unary(TestService.unary, Note(), CallOptions(timeout: timeout))
    }
    await channel.shutdown()
    await server.shutdown(grace: .zero)
    await group.shutdown()
    return error
  }

  private static var quick: ChannelConfiguration {
    var configuration = ChannelConfiguration()
    configuration.keepaliveTime = .milliseconds(5)
    configuration.keepaliveTimeout = .milliseconds(500)
    return configuration
  }

  private static var local: ServerConfiguration { ServerConfiguration(address: SocketAddress("127.0.0.1:0")!) }

  @Test("R6 a server that says nothing more is given up, and its calls fail")
  func silent() async throws {
    let group = EventLoopGroup(count: 1)
    let server = try RawServer(group) { _, stream in stream.session.transport.pauseReading() }
    var configuration = Self.quick
    configuration.keepaliveTimeout = .milliseconds(20)
    let channel = Channel(target: "127.0.0.1:\(server.port)", group: group, configuration: configuration)
    let error = await failure {
      let _: Note = try await channel.unary(TestService.unary, Note(), CallOptions(timeout: .seconds(60)))
    }
    #expect(error?.code == .unavailable)
    await channel.shutdown()
    await server.close()
    await group.shutdown()
  }

  @Test("R6 a server that answers the PINGs keeps its calls")
  func alive() async throws {
    var server = Self.local
    server.limits.http2.pingInterval = .zero
    let error = try await Self.run(server, Self.quick, timeout: .milliseconds(60))
    #expect(error?.code == .deadlineExceeded)
  }

  @Test("T5 a client that asks too often is sent away")
  func tooMany() async throws {
    let error = try await Self.run(Self.local, Self.quick, timeout: .seconds(60))
    #expect(error?.code == .unavailable)
  }

  @Test("R6 a complaint doubles the time between PINGs")
  func slower() {
    let group = EventLoopGroup(count: 1)
    let loop = ChannelLoop(
      loop: group.loops[0], target: ChannelTarget("127.0.0.1:1", tls: nil, expectedIdentity: nil),
      configuration: Self.quick)
    loop.slowKeepalive()
    #expect(loop.keepaliveTime == .milliseconds(10))
  }

  @Test("T5 two PINGs may come too early; an answer wipes them out", arguments: [(true, 60), (false, 300)])
  func strikes(hasStreams: Bool, interval: Int) {
    var counted = FloodGuard(limits: HTTP2Limits())
    let start = Monotonic(nanoseconds: 1_000_000_000)
    func ping(_ seconds: Int) -> Bool {
      counted.allowsKeepalive(hasStreams: hasStreams, at: start.advanced(by: .seconds(seconds)))
    }
    let patient = (0...5).map { ping($0 * interval) }
    #expect(patient == Array(repeating: true, count: 6))
    let hasty = (1...3).map { ping(5 * interval + $0) }
    #expect(hasty == [true, true, false])
    counted.answerSent()
    let after = (4...7).map { ping(5 * interval + $0) }
    #expect(after == [true, true, true, false])
  }

  @Test("T7 a stream whose reader stands still is reset, and its handler ends")
  func slowReader() async throws {
    let ended = Signal()
    let expand = MethodHandler.serverStreaming(TestService.expand) {
      (_: Note, responses: ResponseWriter<Note>, _: CallContext) in
      defer { ended.raise() }
      while true { try await responses.write(Note(size: 10_000)) }
    }
    let configure: (inout ServerConfiguration) -> Void = { $0.limits.http2.writeStallTimeout = .milliseconds(50) }
    try await Rig.run(loops: 1, [expand], configure: configure) { rig in
      let loop = rig.group.loops[0]
      let client = try await RawClient.connect(port: rig.server.port, on: loop)
      let response = await client.call("/test.Notes/Expand", isReading: false, on: loop)
      #expect(response.code == .cancel)
      await ended.wait()
    }
  }

  @Test("T7 what waits on all connections together has an end")
  func outputBudget() async throws {
    let large = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) in Note(size: 8 << 20) }
    let configure: (inout ServerConfiguration) -> Void = { $0.limits.unsentBytesTotalMax = 2 << 20 }
    try await Rig.run(loops: 1, [large], configure: configure) { rig in
      let loop = rig.group.loops[0]
      let client = try await RawClient.connect(port: rig.server.port, on: loop)
      let response = await client.call(isReading: false, on: loop)
      #expect(response.code == .connectionLost)
    }
  }

  @Test("T3 a header block that is never whole ends the connection")
  func headerBlock() async throws {
    let configure: (inout ServerConfiguration) -> Void = { $0.limits.http2.headerBlockTimeout = .milliseconds(50) }
    try await Rig.run(loops: 1, [CallTests.echo], configure: configure) { rig in
      let loop = rig.group.loops[0]
      let closed = Signal()
      try await withTaskExecutorPreference(loop) {
        let stream = try await ByteStream.connect(to: SocketAddress("127.0.0.1:\(rig.server.port)")!, on: loop)
        stream.delegate = Listening(closed)
        stream.write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        stream.write([0, 0, 0, 4, 0, 0, 0, 0, 0])
        stream.write([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82])
      }
      await closed.wait()
    }
  }

  private final class Listening: ByteStreamDelegate {
    private let end: Signal

    init(_ end: Signal) { self.end = end }

    func established(_ stream: ByteStream) {}
    func received(_ bytes: UnsafeRawBufferPointer, _ stream: ByteStream) {}
    func drained(_ stream: ByteStream) {}
    func closed(_ error: (any Error)?, _ stream: ByteStream) { end.raise() }
  }

  @Test("T7 only waiting without progress counts as a stall")
  func stallCounter() {
    var counter = StallCounter()
    let looks = [(false, 0), (true, 0), (true, 0), (true, 5), (true, 5), (false, 5), (true, 5)].map {
      counter.look(isWaiting: $0.0, progress: $0.1)
    }
    #expect(looks == [0, 1, 2, 0, 1, 0, 1])
  }

  @Test("T6 connections are counted over all loops: by address and in all", arguments: [true, false])
  func connectionLimits(isByAddress: Bool) async throws {
    let configure: (inout ServerConfiguration) -> Void = { configuration in
      if isByAddress {
        configuration.limits.connectionsPerAddressMax = 3
      } else {
        configuration.limits.connectionsMax = 3
      }
    }
    try await Rig.run(loops: 2, [CallTests.echo], configure: configure) { rig in
      var clients: [(RawClient, EventLoop)] = []
      for index in 0..<8 {
        let loop = rig.group.loops[index % 2]
        clients.append((try await RawClient.connect(port: rig.server.port, on: loop), loop))
      }
      var answered = 0
      for (client, loop) in clients where await client.call(on: loop).status == "0" { answered += 1 }
      #expect(answered == 3)
    }
  }
}
