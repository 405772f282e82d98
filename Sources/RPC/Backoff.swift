internal import Primitives

/// How long to wait before the next attempt: longer after each failure, with jitter. Pure but for the dice.
struct Backoff {
  private static let factor = 1.6
  private let initial: Duration
  private let max: Duration
  private var next: Duration

  init(initial: Duration, max: Duration) {
    self.initial = initial
    self.max = max
    next = initial
  }

  /// The wait after one more failure; `dice` is within 0.8 to 1.2.
  mutating func failed(dice: Double = .random(in: 0.8...1.2)) -> Duration {
    let wait = next * dice
    next = min(next * Self.factor, max)
    return wait
  }

  mutating func succeeded() { next = initial }
}
