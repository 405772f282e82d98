/// The messages of a call that have arrived and wait for their reader, how they end, and the reader that waits.
struct InboundMessages {
  /// What the reader gets next.
  enum Step {
    case message([UInt8])
    case end
    case failure(any Error)
    case wait
  }

  /// What a waiting message costs beside its bytes, so that empty ones cannot pile up either.
  private static let messageOverhead = 32

  private var messages: [(bytes: [UInt8], isCompressed: Bool)] = []
  private var head = 0
  private var failure: (any Error)?
  private var ending: Step?
  private var waiter: UnsafeContinuation<Void, Never>?
  /// Bytes of the waiting messages and what they cost beside.
  private(set) var byteCount = 0
  /// Whether the message that the reader got last had come compressed.
  private(set) var wasCompressed = false

  var count: Int { messages.count - head }

  mutating func append(_ message: [UInt8], isCompressed: Bool) {
    messages.append((message, isCompressed))
    byteCount += message.count + Self.messageOverhead
    wake()
  }

  /// No more messages come: after those that wait the reader gets the end, or `error`.
  mutating func end(_ error: (any Error)? = nil) {
    if ending == nil { ending = error.map { .failure($0) } ?? .end }
    wake()
  }

  /// The reader gets `error` at once; what waits is dropped.
  mutating func fail(_ error: any Error) {
    if failure == nil { failure = error }
    messages = []
    head = 0
    byteCount = 0
    wake()
  }

  mutating func next() -> Step {
    if let failure { return .failure(failure) }
    if head < messages.count {
      let message = messages[head].bytes
      wasCompressed = messages[head].isCompressed
      messages[head].bytes = []
      head += 1
      byteCount -= message.count + Self.messageOverhead
      if head == messages.count {
        messages.removeAll(keepingCapacity: true)
        head = 0
      }
      return .message(message)
    }
    return ending ?? .wait
  }

  /// Suspends a reader until something changes. One reader: a second wakes the first.
  mutating func wait(_ continuation: UnsafeContinuation<Void, Never>) {
    wake()
    waiter = continuation
  }

  mutating func wake() {
    guard let waiter else { return }
    self.waiter = nil
    waiter.resume()
  }
}
