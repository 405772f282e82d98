import EventLoop

/// Sends bytes as they are and reads until the server closes.
///
/// Safety: `@unchecked Sendable` because the variables are touched on the stream's loop only.
final class RawClient: ByteStreamDelegate, @unchecked Sendable {
  struct Answer {
    let status: Int
    let head: String
    let body: String
  }

  private var received: [UInt8] = []
  private let end: AsyncStream<[UInt8]>
  private let continuation: AsyncStream<[UInt8]>.Continuation

  private init() {
    (end, continuation) = AsyncStream.makeStream()
  }

  func established(_ stream: ByteStream) {}
  func drained(_ stream: ByteStream) {}

  func received(_ bytes: UnsafeRawBufferPointer, _ stream: ByteStream) {
    received += bytes
  }

  func closed(_ error: (any Error)?, _ stream: ByteStream) {
    continuation.yield(received)
    continuation.finish()
  }

  /// Sends `request` and returns the last answer before the end of the connection; nil when there is none.
  static func send(_ request: [UInt8], port: Int, loop: EventLoop) async throws -> Answer? {
    let client = RawClient()
    let stream = try await ByteStream.connect(to: .v4(0x7f00_0001, port: UInt16(port)), on: loop)
    await Task(executorPreference: loop) {
      stream.delegate = client
      stream.write(request)
    }.value
    for await bytes in client.end { return parse(String(decoding: bytes, as: UTF8.self)) }
    return nil
  }

  static func send(_ request: String, port: Int, loop: EventLoop) async throws -> Answer? {
    try await send(Array(request.utf8), port: port, loop: loop)
  }

  private static func parse(_ text: String) -> Answer? {
    let halves = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    guard let head = halves.first, let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
      return nil
    }
    return Answer(status: status, head: String(head), body: halves.count > 1 ? String(halves[1]) : "")
  }
}
