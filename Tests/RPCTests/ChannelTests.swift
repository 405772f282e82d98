import EventLoop
import HTTP2
import Primitives
import RPC
import Synchronization
import Testing

/// Where a channel's calls go.
@Suite struct ChannelTests {
  @Test("RPC calls take turns over the target's addresses, and pass over one that is gone")
  func roundRobin() async throws {
    let group = EventLoopGroup(count: 1)
    let servers = try (0..<3).map { _ in try RawServer(group) { _, stream in RawServer.answer(stream) } }
    let target = servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
    let channel = Channel(target: target, group: group)
    func call() async throws { let _: Note = try await channel.unary(TestService.unary, Note()) }
    // The first answers may come before every connection is there.
    while servers.contains(where: { $0.requests.isEmpty }) { try await call() }
    let before = servers.map { $0.requests.count }
    for _ in 0..<30 { try await call() }
    #expect(zip(servers, before).map { $0.requests.count - $1 } == [10, 10, 10])
    await channel.shutdown()
    for server in servers { await server.close() }
    await group.shutdown()
  }

  @Test("RPC an address that refuses leaves the calls to the others")
  func oneGone() async throws {
    let group = EventLoopGroup(count: 1)
    let server = try RawServer(group) { _, stream in RawServer.answer(stream) }
    let gone = try RawServer(group) { _, _ in }
    await gone.close()
    let channel = Channel(target: "127.0.0.1:\(gone.port),127.0.0.1:\(server.port)", group: group)
    for _ in 0..<20 { let _: Note = try await channel.unary(TestService.unary, Note()) }
    #expect(server.requests.count == 20)
    await channel.shutdown()
    await server.close()
    await group.shutdown()
  }

  @Test("RPC a channel within the process needs no port, and is drained like any other", arguments: 1...2)
  func inProcess(loops: Int) async throws {
    let group = EventLoopGroup(count: loops)
    let clients = EventLoopGroup(count: 1)
    let expand = MethodHandler.serverStreaming(TestService.expand) {
      (note: Note, responses: ResponseWriter<Note>, _: CallContext) in
      for _ in 0..<100 { try await responses.write(note) }
    }
    let server = Server(
      configuration: ServerConfiguration(address: SocketAddress("127.0.0.1:0")!),
      services: [TestService(handlers: [CallTests.echo, expand])], group: group)
    for group in [group, clients] {
      let channel = Channel.inProcess(server, group: group)
      let answer: Note = try await channel.unary(TestService.unary, Note(size: 300_000))
      #expect(answer == Note(size: 300_000))
      let responses: ResponseStream<Note> = try await channel.serverStreaming(TestService.expand, Note("n"))
      #expect(try await responses.reduce(0) { count, _ in count + 1 } == 100)
      await channel.shutdown()
    }
    let channel = Channel.inProcess(server, group: clients)
    let _: Note = try await channel.unary(TestService.unary, Note())
    await server.shutdown(grace: .seconds(10))
    let error = await failure { let _: Note = try await channel.unary(TestService.unary, Note()) }
    #expect(error?.code == .unavailable)
    await channel.shutdown()
    await clients.shutdown()
    await group.shutdown()
  }
}
