import EventLoop
import Primitives
import RPC
import Synchronization
import Testing

/// How calls end other than well.
@Suite struct OutcomeTests {
  struct Secretive: Error {}

  @Test("RPC an error's code, message, reason, violations and delay reach the client")
  func details() async throws {
    let thrown = ServiceError(
      .invalidArgument, "Zu kurz: ☺ 100% \t\r\n😈", reason: "INVALID_FIELD",
      violations: [.init(field: "title", description: "must not be empty"), .init(field: "due", description: "ä")],
      retryAfter: .milliseconds(1500), cause: Secretive())
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in throw thrown }
    try await Rig.run([handler]) { rig in
      let error = try #require(await failure { _ = try await rig.unary(Note()) })
      #expect(error.code == .invalidArgument)
      #expect(error.message == thrown.message)
      #expect(error.reason == "INVALID_FIELD")
      #expect(error.violations == thrown.violations)
      #expect(error.retryAfter == .milliseconds(1500))
      #expect(error.cause == nil)
    }
  }

  @Test("RPC every code reaches the client", arguments: ServiceError.Code.allCases)
  func codes(code: ServiceError.Code) async throws {
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in
      throw ServiceError(code, "because")
    }
    try await Rig.run(loops: 1, [handler]) { rig in
      let error = await failure { _ = try await rig.unary(Note()) }
      #expect(error?.code == code)
      #expect(error?.message == "because")
    }
  }

  @Test("RPC an error that is not meant for callers becomes INTERNAL and says nothing")
  func escapedError() async throws {
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in throw Secretive() }
    try await Rig.run([handler]) { rig in
      let error = await failure { _ = try await rig.unary(Note()) }
      #expect(error?.code == .internal)
      #expect(error?.message.contains("Secretive") == false)
    }
  }

  @Test("R1 a deadline ends the call at the client and cancels the handler")
  func deadline() async throws {
    let ended = Signal()
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, context: CallContext) -> Note in
      if note.text == "connect" { return note }
      #expect(context.deadline != nil)
      #expect(context.callOptions().deadline! < context.deadline!)
      defer { ended.raise() }
      try await untilCancelled()
    }
    try await Rig.run(loops: 1, [handler]) { rig in
      // The connection is there already, so that the handler has begun long before its deadline.
      _ = try await rig.unary(Note("connect"))
      let error = await failure { _ = try await rig.unary(Note(), CallOptions(timeout: .milliseconds(500))) }
      #expect(error?.code == .deadlineExceeded)
      await ended.wait()
    }
  }

  @Test("R1 a deadline that has passed is not sent at all")
  func pastDeadline() async throws {
    try await Rig.run([CallTests.echo]) { rig in
      let error = await failure { _ = try await rig.unary(Note(), CallOptions(timeout: .zero)) }
      #expect(error?.code == .deadlineExceeded)
    }
  }

  @Test("R2 cancelling the client's task cancels the handler's")
  func cancellation() async throws {
    let started = Signal()
    let ended = Signal()
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, _: CallContext) -> Note in
      started.raise()
      defer { ended.raise() }
      try await untilCancelled()
    }
    try await Rig.run([handler]) { rig in
      let task = Task { await failure { _ = try await rig.unary(Note(), CallOptions()) } }
      await started.wait()
      task.cancel()
      #expect(await task.value?.code == .cancelled)
      await ended.wait()
    }
  }

  @Test("R2 a handler that waits for requests, or for room to write, is cancelled with its call")
  func cancelledStream() async throws {
    let started = Signal()
    let ended = Signal()
    let chat = MethodHandler.bidirectional(TestService.chat) {
      (requests: RequestStream<Note>, _: ResponseWriter<Note>, _: CallContext) in
      started.raise()
      defer { ended.raise() }
      for try await _ in requests {}
    }
    try await Rig.run([chat]) { rig in
      let call: BidirectionalCall<Note, Note> = try await rig.channel.bidirectional(TestService.chat)
      await started.wait()
      call.cancel()
      await ended.wait()
      let error = await failure { try await call.write(Note()) }
      #expect(error?.code == .cancelled)
    }
  }

  @Test("T10 a request above the limit is RESOURCE_EXHAUSTED, one at the limit is served")
  func requestLimit() async throws {
    let configure: (inout ServerConfiguration) -> Void = { $0.limits.messageBytesMax = 1003 }
    try await Rig.run([CallTests.echo], configure: configure) { rig in
      let answer = try await rig.unary(Note(size: 1000))
      #expect(answer.body.count == 1000)
      let error = await failure { _ = try await rig.unary(Note(size: 1001)) }
      #expect(error?.code == .resourceExhausted)
    }
  }

  @Test("T10 a response above the client's limit is RESOURCE_EXHAUSTED")
  func responseLimit() async throws {
    try await Rig.run([CallTests.echo]) { rig in
      var configuration = ChannelConfiguration()
      configuration.messageBytesMax = 1003
      let channel = Channel(
        target: "127.0.0.1:\(rig.server.port)", group: rig.group, configuration: configuration)
      let small: Note = try await channel.unary(TestService.unary, Note(size: 1000))
      #expect(small.body.count == 1000)
      let error = await failure { let _: Note = try await channel.unary(TestService.unary, Note(size: 1001)) }
      #expect(error?.code == .resourceExhausted)
      await channel.shutdown()
    }
  }

  @Test("RPC a method that is not served is UNIMPLEMENTED")
  func unknownMethod() async throws {
    try await Rig.run([CallTests.echo]) { rig in
      for method in [
        MethodDescriptor(service: "test.Notes", name: "Missing", kind: .unary),
        MethodDescriptor(service: "test.Missing", name: "Unary", kind: .unary),
      ] {
        let error = await failure { let _: Note = try await rig.channel.unary(method, Note()) }
        #expect(error?.code == .unimplemented)
      }
    }
  }

  @Test("RPC the end of every call is reported once, with its outcome and its bytes")
  func callEnd() async throws {
    let ends = Mutex<[String]>([])
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, _: CallContext) -> Note in
      if note.body.isEmpty { throw ServiceError.denied() }
      return note
    }
    let configure: (inout ServerConfiguration) -> Void = { configuration in
      configuration.onCallEnd = { context, error, duration, bytesIn, bytesOut in
        #expect(duration >= .zero)
        ends.withLock { $0.append("\(context.method.name) \(error?.code.name ?? "OK") \(bytesIn) \(bytesOut)") }
      }
    }
    try await Rig.run([handler], configure: configure) { rig in
      _ = try await rig.unary(Note("abc"))
      _ = await failure { _ = try await rig.unary(Note()) }
    }
    #expect(ends.withLock { $0 } == ["Unary OK 10 10", "Unary PERMISSION_DENIED 5 0"])
  }
}
