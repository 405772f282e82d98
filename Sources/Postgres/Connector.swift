internal import EventLoop
internal import Primitives

/// Makes a loop's connections. After a failed attempt it refuses at once until a growing, jittered pause is over, so
/// that callers learn quickly that the database is down and the database is not stormed when it returns.
///
/// Safety: confined to its loop.
final class Connector: @unchecked Sendable {
  private static let pauseMin = Duration.milliseconds(50)
  private static let pauseMax = Duration.seconds(5)

  private let loop: EventLoop
  private let blocking: BlockingPool
  private let parameters: ConnectionParameters?
  private let timeout: Duration
  private var failures = 0
  private var pausedUntil: Monotonic?
  private var lastError = ServiceError.databaseUnavailable(nil)
  private var connecting: [ObjectIdentifier: Connection] = [:]
  private var isClosed = false

  init(loop: EventLoop, blocking: BlockingPool, parameters: ConnectionParameters?, timeout: Duration) {
    self.loop = loop
    self.blocking = blocking
    self.parameters = parameters
    self.timeout = timeout
  }

  /// How long attempts are still refused.
  var pause: Duration {
    guard let pausedUntil else { return .zero }
    let now = Monotonic.now()
    return now < pausedUntil ? now.duration(to: pausedUntil) : .zero
  }

  /// `completion` is called once, on the loop; within this call when the attempt is refused.
  func connect(_ completion: @escaping (Result<Connection, ServiceError>) -> Void) {
    guard !isClosed else { return completion(.failure(.databaseUnavailable(ConnectionFault(reason: "closed")))) }
    guard let parameters else {
      return completion(.failure(.databaseUnavailable(ConnectionFault(reason: "the database URL is not valid"))))
    }
    guard pause == .zero else { return completion(.failure(lastError)) }
    let connection = Connection(loop: loop, blocking: blocking)
    connecting[ObjectIdentifier(connection)] = connection
    connection.open(parameters, timeout: timeout) { [self] error in
      connecting[ObjectIdentifier(connection)] = nil
      if let error {
        failed(error)
        return completion(.failure(error))
      }
      failures = 0
      pausedUntil = nil
      completion(.success(connection))
    }
  }

  private func failed(_ error: ServiceError) {
    lastError = error
    // Attempts made side by side count once.
    guard pause == .zero, !isClosed else { return }
    let full = min(Connector.pauseMin * (1 << min(failures, 10)), Connector.pauseMax)
    pausedUntil = Monotonic.now().advanced(by: full * Double.random(in: 0.5...1))
    failures += 1
    Log.warning("database_connect_failed", ["cause": "\(error.cause.map { String(describing: $0) } ?? "")"])
  }

  func close() {
    isClosed = true
    for connection in connecting.values { connection.close() }
  }
}
