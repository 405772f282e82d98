internal import Primitives

/// Keeps retries from adding to an overload (gRPC A6): ten tokens, one for each failure, a tenth back for each success;
/// none is repeated while half of them are gone. Pure.
struct RetryThrottle {
  private static let tokensMax = 10.0
  private static let earned = 0.1
  private var tokens = tokensMax

  var isOpen: Bool { tokens > Self.tokensMax / 2 }

  mutating func succeeded() { tokens = min(Self.tokensMax, tokens + Self.earned) }

  mutating func failed() { tokens = max(0, tokens - 1) }
}

/// How one call is repeated. Pure but for the dice.
struct RetryPolicy {
  /// The first attempt included.
  static let attemptsMax = 5
  private(set) var attempts = 1
  private var backoff = Backoff(initial: .milliseconds(50), max: .seconds(1))

  /// What a server's `grpc-retry-pushback-ms` asks for.
  enum Pushback: Equatable {
    case none
    case after(Duration)
    /// Negative or no number: not again.
    case never

    init(_ text: String) {
      guard let milliseconds = Int64(text), 0...Int64(Int32.max) ~= milliseconds else {
        self = .never
        return
      }
      self = .after(.milliseconds(milliseconds))
    }
  }

  /// The wait before one more attempt; nil when there is none.
  mutating func next(_ pushback: Pushback, dice: Double = .random(in: 0.8...1.2)) -> Duration? {
    guard attempts < Self.attemptsMax else { return nil }
    let wait: Duration
    switch pushback {
    case .none: wait = backoff.failed(dice: dice)
    case .after(let asked):
      backoff.succeeded()
      wait = asked
    case .never: return nil
    }
    attempts += 1
    return wait
  }
}
