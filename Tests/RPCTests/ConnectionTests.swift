import EventLoop
import HTTP2
import Primitives
import RPC
import Synchronization
import Testing

/// Connections that come, go and are lost.
@Suite struct ConnectionTests {
  @Test("R4 a server that shuts down finishes the calls under way and tells its clients first")
  func drain() async throws {
    let started = Signal()
    let release = Signal()
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, _: CallContext) in
      started.raise()
      await release.wait()
      return note
    }
    try await Rig.run([handler]) { rig in
      let loop = rig.group.loops[0]
      let client = try await RawClient.connect(port: rig.server.port, on: loop)
      async let response = client.call(on: loop)
      await started.wait()
      async let shutdown: Void = rig.server.shutdown(grace: .seconds(60))
      await client.goneAwaySignal.wait()
      release.raise()
      #expect(await response.status == "0")
      await shutdown
      await client.closedSignal.wait()
    }
  }

  @Test("R4 after the grace, calls that go on are cut off and their handlers cancelled")
  func graceOver() async throws {
    let started = Signal()
    let ended = Signal()
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in
      started.raise()
      defer { ended.raise() }
      try await untilCancelled()
    }
    try await Rig.run([handler]) { rig in
      async let error = failure { _ = try await rig.unary(Note()) }
      await started.wait()
      await rig.server.shutdown(grace: .milliseconds(20))
      #expect(await error?.code == .unavailable)
      await ended.wait()
    }
  }

  @Test("RPC a channel finds a server again after its restart, and fails fast until then")
  func restart() async throws {
    let group = EventLoopGroup(count: 1)
    func serve(_ port: Int) throws -> Server {
      let server = Server(
        configuration: ServerConfiguration(address: SocketAddress("127.0.0.1:\(port)")!),
        services: [TestService(handlers: [CallTests.echo])], group: group)
      try server.start()
      return server
    }
    let first = try serve(0)
    let port = first.port
    let channel = Channel(target: "127.0.0.1:\(port)", group: group)
    let before: Note = try await channel.unary(TestService.unary, Note("a"))
    #expect(before.text == "a")
    await first.shutdown(grace: .zero)
    for _ in 0..<3 {
      let error = await failure { let _: Note = try await channel.unary(TestService.unary, Note()) }
      #expect(error?.code == .unavailable)
    }
    let second = try serve(port)
    let after: Note = try await channel.unary(
      TestService.unary, Note("b"), CallOptions(timeout: .seconds(30), waitForReady: true))
    #expect(after.text == "b")
    await channel.shutdown()
    await second.shutdown(grace: .zero)
    await group.shutdown()
  }

  @Test("RPC a call that waits for a server gives up at its deadline")
  func waitForReady() async throws {
    let group = EventLoopGroup(count: 1)
    let gone = Server(
      configuration: ServerConfiguration(address: SocketAddress("127.0.0.1:0")!), services: [], group: group)
    try gone.start()
    let channel = Channel(target: "127.0.0.1:\(gone.port)", group: group)
    await gone.shutdown(grace: .zero)
    let error = await failure {
      let _: Note = try await channel.unary(
        TestService.unary, Note(), CallOptions(timeout: .milliseconds(60), waitForReady: true))
    }
    #expect(error?.code == .deadlineExceeded)
    await channel.shutdown()
    let closed = await failure { let _: Note = try await channel.unary(TestService.unary, Note()) }
    #expect(closed?.code == .unavailable)
    await group.shutdown()
  }

  @Test("R5 connections that age away lose no call")
  func age() async throws {
    let configure: (inout ServerConfiguration) -> Void = { $0.limits.ageMax = .milliseconds(3) }
    try await Rig.run(loops: 1, [CallTests.echo], configure: configure) { rig in
      let start = Monotonic.now()
      var count = 0
      while start.duration(to: .now()) < .milliseconds(200) {
        let answer = try await rig.unary(Note("x"))
        #expect(answer.text == "x")
        count += 1
      }
      #expect(count > 0)
    }
  }

  @Test("T8 calls above the server's stream limit wait their turn")
  func streamLimit() async throws {
    let running = Mutex((now: 0, most: 0))
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, _: CallContext) in
      running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
      for _ in 0..<20 { await Task.yield() }
      running.withLock { $0.now -= 1 }
      return note
    }
    let configure: (inout ServerConfiguration) -> Void = { $0.limits.http2.streamsMax = 3 }
    try await Rig.run(loops: 1, [handler], configure: configure) { rig in
      try await withThrowingTaskGroup(of: Note.self) { group in
        for _ in 0..<100 { group.addTask { try await rig.unary(Note("x")) } }
        for try await note in group { #expect(note.text == "x") }
      }
      #expect(running.withLock { $0.most } <= 3)
    }
  }

  @Test("RPC an idle connection is ended")
  func idle() async throws {
    let configure: (inout ServerConfiguration) -> Void = { $0.limits.idleTimeout = .milliseconds(10) }
    try await Rig.run(loops: 1, [CallTests.echo], configure: configure) { rig in
      let client = try await RawClient.connect(port: rig.server.port, on: rig.group.loops[0])
      await client.closedSignal.wait()
      let answer = try await rig.unary(Note("x"))
      #expect(answer.text == "x")
    }
  }

  @Test("T1 a peer that opens and resets streams without end is sent away")
  func rapidReset() async throws {
    let started = Mutex(0)
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in
      started.withLock { $0 += 1 }
      try await untilCancelled()
    }
    // Nothing is earned back while the test runs, however slow the machine.
    let configure: (inout ServerConfiguration) -> Void = { configuration in
      configuration.limits.http2.resetsReceived = HTTP2Limits.Rate(burst: 200, perSecond: 0)
    }
    try await Rig.run(loops: 1, [handler], configure: configure) { rig in
      let client = try await RawClient.connect(port: rig.server.port, on: rig.group.loops[0])
      await client.openAndReset(1000, on: rig.group.loops[0])
      await client.closedSignal.wait()
      #expect(client.goneAwayCode.withLock { $0 } == .enhanceYourCalm)
      let answered = await failure { _ = try await rig.unary(Note(), CallOptions(timeout: .milliseconds(30))) }
      #expect(answered?.code == .deadlineExceeded)
      #expect(started.withLock { $0 } <= 251)
    }
  }
}
