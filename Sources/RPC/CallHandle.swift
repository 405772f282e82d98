/// A client's hold on a call under way; letting go of it cancels the call.
final class CallHandle: FrameSource, FrameSink, Sendable {
  func next() async throws -> [UInt8]? { nil }
  func send(_ frame: [UInt8]) async throws {}
  func finishSending() async throws {}
  func cancel() {}
}
