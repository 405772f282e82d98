package import Primitives
package import RPC
package import Sealing

/// A place in a list that is ordered by a time and then by an id: what its page tokens carry.
package struct TimeCursor: Sendable, Equatable {
  package let time: Instant
  package let id: Identifier

  package init(time: Instant, id: Identifier) {
    self.time = time
    self.id = id
  }

  /// 8 bytes of time, 16 of id.
  package var bytes: [UInt8] {
    let bits = UInt64(bitPattern: time.microseconds)
    return (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(56 - $0 * 8)) } + id.bytes
  }

  package init?(bytes: [UInt8]) {
    guard bytes.count == 24, let id = Identifier(bytes: bytes[8...]) else { return nil }
    time = Instant(microseconds: Int64(bitPattern: bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }))
    self.id = id
  }
}

/// The page tokens of one call: good only for the same caller, method and other arguments.
package struct PageScope: Sendable {
  private let sealer: PageTokenSealer
  private let caller: String
  private let method: String
  private let arguments: [UInt8]

  /// `arguments` is the request without its paging fields, in any fixed form.
  package init(_ sealer: PageTokenSealer, _ context: CallContext, arguments: [UInt8]) {
    self.sealer = sealer
    caller = context.caller.scope
    method = context.method.path
    self.arguments = arguments
  }

  package func seal(_ cursor: TimeCursor) throws -> String {
    try sealer.seal(cursor.bytes, caller: caller, method: method, arguments: arguments)
  }

  /// nil for an empty token: the first page. INVALID_ARGUMENT for a token from elsewhere.
  package func open(_ token: String) throws(ServiceError) -> TimeCursor? {
    if token.isEmpty { return nil }
    let bytes = try sealer.open(token, caller: caller, method: method, arguments: arguments)
    guard let cursor = TimeCursor(bytes: bytes) else { throw .invalid("page_token", "is not from this list") }
    return cursor
  }
}
