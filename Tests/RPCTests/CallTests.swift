import EventLoop
import Primitives
import RPC
import Synchronization
import Testing

/// Calls between our own client and our own server.
@Suite struct CallTests {
  static let echo = MethodHandler.unary(TestService.unary) { (note: Note, _: CallContext) in note }

  @Test(
    "RPC a unary call brings its message there and back, at every size up to the limit",
    arguments: [
      0, 1, 1024, 16_379, 16_384, 65_536, 300_000, (4 << 20) - 5,
    ])
  func unary(size: Int) async throws {
    try await Rig.run([Self.echo]) { rig in
      let answer = try await rig.unary(Note(size: size))
      #expect(answer == Note(size: size))
    }
  }

  @Test("RPC many calls at once each get their own answer")
  func concurrent() async throws {
    try await Rig.run([Self.echo]) { rig in
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for index in 0..<500 {
          group.addTask { try await rig.unary(Note("\(index)")).text == "\(index)" }
        }
        for try await isRight in group { #expect(isRight) }
      }
    }
  }

  @Test("RPC a server stream arrives whole and in order")
  func serverStreaming() async throws {
    let expand = MethodHandler.serverStreaming(TestService.expand) {
      (note: Note, responses: ResponseWriter<Note>, _: CallContext) in
      for index in 0..<2000 { try await responses.write(Note("\(note.text) \(index)")) }
    }
    try await Rig.run([expand]) { rig in
      let responses: ResponseStream<Note> = try await rig.channel.serverStreaming(TestService.expand, Note("n"))
      var count = 0
      for try await note in responses {
        #expect(note.text == "n \(count)")
        count += 1
      }
      #expect(count == 2000)
    }
  }

  @Test("RPC a stream that fails delivers what was written before the error")
  func failingStream() async throws {
    let expand = MethodHandler.serverStreaming(TestService.expand) {
      (_: Note, responses: ResponseWriter<Note>, _: CallContext) in
      try await responses.write(Note("one"))
      throw ServiceError.precondition("STOPPED", "It stopped.")
    }
    try await Rig.run([expand]) { rig in
      let responses: ResponseStream<Note> = try await rig.channel.serverStreaming(TestService.expand, Note())
      var iterator = responses.makeAsyncIterator()
      let first = try await iterator.next()
      #expect(first?.text == "one")
      let error = await failure { _ = try await iterator.next() }
      #expect(error?.code == .failedPrecondition)
      #expect(error?.reason == "STOPPED")
    }
  }

  @Test("T7 a reader that stops makes the writer wait, and letting go of the stream cancels it")
  func backPressure() async throws {
    let written = Mutex(0)
    let ended = Signal()
    let expand = MethodHandler.serverStreaming(TestService.expand) {
      (_: Note, responses: ResponseWriter<Note>, _: CallContext) in
      defer { ended.raise() }
      for _ in 0..<10_000 {
        try await responses.write(Note(size: 64 << 10))
        written.withLock { $0 += 1 }
      }
    }
    try await Rig.run([expand]) { rig in
      do {
        let responses: ResponseStream<Note> = try await rig.channel.serverStreaming(TestService.expand, Note())
        var iterator = responses.makeAsyncIterator()
        _ = try await iterator.next()
      }
      await ended.wait()
      #expect(written.withLock { $0 } < 200)
    }
  }

  @Test("RPC a client stream is collected, also one larger than every window")
  func clientStreaming() async throws {
    let collect = MethodHandler.clientStreaming(TestService.collect) {
      (requests: RequestStream<Note>, _: CallContext) in
      var total = 0
      for try await request in requests { total += request.body.count }
      return Note("\(total)")
    }
    try await Rig.run([collect]) { rig in
      let call: ClientStreamingCall<Note, Note> = try await rig.channel.clientStreaming(TestService.collect)
      for _ in 0..<200 { try await call.write(Note(size: 100_000)) }
      let answer = try await call.finish()
      #expect(answer.text == "20000000")
    }
  }

  @Test("RPC both sides of a bidirectional call take turns")
  func bidirectional() async throws {
    let chat = MethodHandler.bidirectional(TestService.chat) {
      (requests: RequestStream<Note>, responses: ResponseWriter<Note>, _: CallContext) in
      for try await request in requests { try await responses.write(Note("re: \(request.text)")) }
    }
    try await Rig.run([chat]) { rig in
      let call: BidirectionalCall<Note, Note> = try await rig.channel.bidirectional(TestService.chat)
      var answers = call.responses.makeAsyncIterator()
      for index in 0..<50 {
        try await call.write(Note("\(index)"))
        let answer = try await answers.next()
        #expect(answer?.text == "re: \(index)")
      }
      try await call.finishWriting()
      let last = try await answers.next()
      #expect(last == nil)
    }
  }

  @Test("RPC a handler, its awaits, its actors and its child tasks stay on the connection's loop")
  func staysOnLoop() async throws {
    actor Counter {
      func loop() -> EventLoop? { EventLoop.current }
    }
    final class Sightings: Sendable {
      let seen = Mutex<[ObjectIdentifier?]>([])
      func note(_ loop: EventLoop?) { seen.withLock { $0.append(loop.map { ObjectIdentifier($0) }) } }
    }
    let sightings = Sightings()
    let counter = Counter()
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, _: CallContext) in
      sightings.note(EventLoop.current)
      await Task.yield()
      sightings.note(EventLoop.current)
      sightings.note(await counter.loop())
      async let child: Void = sightings.note(EventLoop.current)
      await child
      await withTaskGroup { group in
        for _ in 0..<3 { group.addTask { sightings.note(EventLoop.current) } }
      }
      sightings.note(EventLoop.current)
      return note
    }
    try await Rig.run([handler]) { rig in
      _ = try await rig.unary(Note("x"))
      let loops = sightings.seen.withLock { $0 }
      #expect(loops.count == 8)
      #expect(Set(loops).count == 1)
      #expect(rig.group.loops.contains { ObjectIdentifier($0) == loops[0] })
    }
  }

  @Test("RPC metadata travels: order, duplicates, bytes")
  func metadata() async throws {
    let received = Mutex<Metadata>(Metadata())
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, context: CallContext) in
      received.withLock { $0 = context.metadata }
      #expect(context.metadataValue("x-name") == "one")
      return note
    }
    try await Rig.run([handler]) { rig in
      var options = CallOptions(timeout: .seconds(20))
      options.metadata.append("X-Name", "one")
      options.metadata.append("x-name", "two")
      options.metadata.append("x-raw-bin", bytes: [0, 255, 10, 13])
      options.metadata.append("grpc-status", "7")
      options.metadata.append("x-bad", "line\nbreak")
      _ = try await rig.unary(Note(), options)
      let metadata = received.withLock { $0 }
      #expect(metadata.values("x-name") == ["one", "two"])
      #expect(metadata.bytes("x-raw-bin") == [0, 255, 10, 13])
      #expect(metadata["grpc-status"] == nil)
      #expect(metadata["x-bad"] == nil)
    }
  }

  @Test("RPC the caller is decided before the handler, without waiting where that is enough")
  func admission() async throws {
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, context: CallContext) in
      Note("\(context.caller)")
    }
    let configure: (inout ServerConfiguration) -> Void = { configuration in
      configuration.admit = { context in
        guard let name = context.metadataValue("x-service") else { return false }
        context.caller = .service(name)
        return true
      }
      configuration.authenticate = { context in
        await Task.yield()
        throw ServiceError.unauthenticated()
      }
    }
    try await Rig.run([handler], configure: configure) { rig in
      let options = CallOptions(timeout: .seconds(20), metadata: ["x-service": "vault"])
      let answer = try await rig.unary(Note(), options)
      #expect(answer.text == "service(\"vault\")")
      let error = await failure { _ = try await rig.unary(Note()) }
      #expect(error?.code == .unauthenticated)
    }
  }
}
