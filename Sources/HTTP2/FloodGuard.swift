package import Primitives

/// Counts the frames that cost us more than they cost the peer, and says when a peer has sent too many. Pure: the time
/// is an argument.
package struct FloodGuard: Sendable {
  package enum Event: Sendable, CaseIterable {
    case ping, settings, resetReceived, resetSent, emptyData, windowUpdate, priority
  }

  private var pings: TokenBucket
  private var settings: TokenBucket
  private var resetsReceived: TokenBucket
  private var resetsSent: TokenBucket
  private var emptyData: TokenBucket
  private var windowUpdates: TokenBucket
  private var priorities: TokenBucket
  private let pingInterval: Duration
  private let pingIntervalIdle: Duration
  private let pingStrikesMax: Int
  private var lastPing: Monotonic?
  private var pingStrikes = 0

  package init(limits: HTTP2Limits) {
    pings = TokenBucket(limits.pings)
    settings = TokenBucket(limits.settings)
    resetsReceived = TokenBucket(limits.resetsReceived)
    resetsSent = TokenBucket(limits.resetsSent)
    emptyData = TokenBucket(limits.emptyData)
    windowUpdates = TokenBucket(limits.windowUpdates)
    priorities = TokenBucket(limits.priorities)
    pingInterval = limits.pingInterval
    pingIntervalIdle = limits.pingIntervalIdle
    pingStrikesMax = limits.pingStrikesMax
  }

  /// Counts one frame; false when the peer is to be sent away.
  package mutating func allows(_ event: Event, at now: Monotonic) -> Bool {
    switch event {
    case .ping: pings.take(at: now)
    case .settings: settings.take(at: now)
    case .resetReceived: resetsReceived.take(at: now)
    case .resetSent: resetsSent.take(at: now)
    case .emptyData: emptyData.take(at: now)
    case .windowUpdate: windowUpdates.take(at: now)
    case .priority: priorities.take(at: now)
    }
  }

  /// We sent a DATA frame: peers measure the line with PINGs and give window back, so both are earned.
  package mutating func dataSent() {
    pings.refill()
    windowUpdates.earn(2)
    answerSent()
  }

  /// We sent data or headers: the client's PINGs are counted anew.
  package mutating func answerSent() {
    lastPing = nil
    pingStrikes = 0
  }

  /// Counts a client's PING by gRPC's rules for keepalive; false when there were too many.
  package mutating func allowsKeepalive(hasStreams: Bool, at now: Monotonic) -> Bool {
    defer { lastPing = now }
    guard let lastPing, lastPing.advanced(by: hasStreams ? pingInterval : pingIntervalIdle) > now else { return true }
    pingStrikes += 1
    return pingStrikes <= pingStrikesMax
  }
}

/// Tokens that come back with time, up to a burst.
struct TokenBucket: Sendable {
  private let rate: HTTP2Limits.Rate
  private var tokens: Int
  private var last: Monotonic?

  init(_ rate: HTTP2Limits.Rate) {
    self.rate = rate
    tokens = rate.burst
  }

  mutating func take(at now: Monotonic) -> Bool {
    if let last {
      let earned = last.duration(to: now).nanoseconds.multipliedReportingOverflow(by: Int64(rate.perSecond))
      let whole = earned.overflow ? Int64(rate.burst) : earned.partialValue / 1_000_000_000
      if whole > 0 {
        earn(Int(clamping: whole))
        self.last = now
      }
    } else {
      last = now
    }
    guard tokens > 0 else { return false }
    tokens -= 1
    return true
  }

  mutating func earn(_ count: Int) { tokens = min(rate.burst, tokens.addingReportingOverflow(count).partialValue) }

  mutating func refill() { tokens = rate.burst }
}
