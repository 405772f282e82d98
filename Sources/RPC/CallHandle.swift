internal import EventLoop

/// A caller's hold on a call under way; letting go of it cancels the call.
final class CallHandle: FrameSource, FrameSink, Sendable {
  private let call: ClientCall

  init(_ call: ClientCall) {
    self.call = call
  }

  deinit { cancel() }

  func next() async throws -> [UInt8]? { try await call.next() }

  func send(_ frame: [UInt8], _ compression: MessageCompression) async throws {
    try await call.send(frame, compression)
  }

  func finishSending() async throws { try await call.finishSending() }

  func cancel() {
    call.loop.execute { [call] in call.cancel() }
  }
}
