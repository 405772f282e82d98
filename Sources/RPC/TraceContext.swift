internal import Primitives

/// One hop of a W3C trace: the trace it belongs to, its own span, and what the caller asked to be passed on.
package struct TraceContext: Sendable, Equatable {
  package let traceID: TraceID
  /// The hop's own span; never zero.
  package let spanID: UInt64
  /// Sampled (1) and random (2), as the caller set them; 0 for a trace that begins here, because no spans are exported.
  package let flags: UInt8
  /// What other vendors' `tracestate` holds: at most 512 bytes, else it was dropped.
  package let state: String?

  static let stateBytesMax = 512

  package struct TraceID: Sendable, Hashable {
    package let high: UInt64
    package let low: UInt64
  }

  /// What code that runs on behalf of an event belongs to: calls and events made inside carry it without being told.
  @TaskLocal package static var current: TraceContext?

  init(traceID: TraceID, spanID: UInt64, flags: UInt8, state: String?) {
    self.traceID = traceID
    self.spanID = spanID
    self.flags = flags
    self.state = state
  }

  /// Goes on with a received trace in a new span; begins a new trace when `traceparent` is missing or malformed.
  package init(continuing traceparent: String?, state: String? = nil) {
    self.init(continuing: traceparent, state: state, fresh: .random())
  }

  init(continuing traceparent: String?, state: @autoclosure () -> String?, fresh: FreshTraceIDs) {
    guard let traceparent, let (traceID, flags) = Self.parse(traceparent.utf8) else {
      self.init(
        traceID: TraceID(high: fresh.high, low: fresh.low), spanID: fresh.span, flags: 0, state: nil)
      return
    }
    let state = state().flatMap { $0.isEmpty || $0.utf8.count > Self.stateBytesMax ? nil : $0 }
    self.init(traceID: traceID, spanID: fresh.span, flags: flags, state: state)
  }

  /// The header for what this hop causes: `00-<32 hex>-<16 hex>-<2 hex>`.
  package var traceparent: String { "00-\(traceIDText)-\(spanIDText)-0\(flags)" }

  /// 32 lower-case hexadecimal digits.
  package var traceIDText: String {
    var digits: [UInt8] = []
    digits.reserveCapacity(32)
    Self.append(traceID.high, to: &digits)
    Self.append(traceID.low, to: &digits)
    return String(decoding: digits, as: UTF8.self)
  }

  /// 16 lower-case hexadecimal digits.
  package var spanIDText: String {
    var digits: [UInt8] = []
    digits.reserveCapacity(16)
    Self.append(spanID, to: &digits)
    return String(decoding: digits, as: UTF8.self)
  }

  /// Every call's line of the log has these texts; a generic way to write them took most of that line's time.
  private static func append(_ value: UInt64, to digits: inout [UInt8]) {
    var shift: UInt64 = 64
    while shift > 0 {
      shift -= 4
      digits.append(Hex.digit(UInt8(truncatingIfNeeded: value >> shift) & 15))
    }
  }

  /// The trace and its flags; nil for what the grammar does not allow. A later version may have more fields at its end.
  static func parse(_ text: String.UTF8View) -> (TraceID, UInt8)? {
    var digits = text.makeIterator()
    func number(_ count: Int) -> UInt64? {
      var value: UInt64 = 0
      for _ in 0..<count {
        guard let byte = digits.next(), let digit = digitValue(byte) else { return nil }
        value = value << 4 | UInt64(digit)
      }
      return value
    }
    let dash = UInt8(ascii: "-")
    guard text.count >= 55, let version = number(2), version != 0xFF, version > 0 || text.count == 55,
      digits.next() == dash, let high = number(16), let low = number(16), high | low != 0,
      digits.next() == dash, let parent = number(16), parent != 0,
      digits.next() == dash, let flags = number(2)
    else { return nil }
    if let next = digits.next(), next != dash { return nil }
    return (TraceID(high: high, low: low), UInt8(flags & 3))
  }

  private static func digitValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}

/// The ids a hop may need: they are drawn for every call, and read only when somebody asks for its trace.
struct FreshTraceIDs: Sendable {
  let high: UInt64
  let low: UInt64
  let span: UInt64

  static func random() -> FreshTraceIDs {
    var generator = SystemRandomNumberGenerator()
    return FreshTraceIDs(high: generator.next(), low: generator.next() | 1, span: generator.next() | 1)
  }
}

/// Draws ids without a system call (wyrand, seeded by the system): they must be unlike each other, not secret.
struct TraceIDSource: ~Copyable {
  private var state = UInt64.random(in: .min ... .max)

  mutating func next() -> FreshTraceIDs {
    FreshTraceIDs(high: draw(), low: draw() | 1, span: draw() | 1)
  }

  private mutating func draw() -> UInt64 {
    state &+= 0xA076_1D64_78BD_642F
    let product = state.multipliedFullWidth(by: state ^ 0xE703_7ED1_A0B4_28DB)
    return product.high ^ product.low
  }
}
