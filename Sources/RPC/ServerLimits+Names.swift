internal import HTTP2

extension ServerLimits {
  /// Sets a limit by its name, such as `handshake`; times in seconds. False when there is no such limit. For programs
  /// whose limits are given from outside.
  package mutating func set(_ name: String, _ value: Double) -> Bool {
    if let path = Self.times[name] {
      self[keyPath: path] = .milliseconds(Int64(value * 1000))
    } else if let path = Self.counts[name] {
      self[keyPath: path] = Int(value)
    } else {
      return false
    }
    return true
  }

  private static var times: [String: WritableKeyPath<ServerLimits, Duration>] {
    [
      "handshake": \.http2.handshakeTimeout, "header": \.http2.headerBlockTimeout,
      "write": \.http2.writeStallTimeout, "idle": \.idleTimeout, "age": \.ageMax, "age-grace": \.ageGrace,
    ]
  }

  private static var counts: [String: WritableKeyPath<ServerLimits, Int>] {
    [
      "streams": \.http2.streamsMax, "message-bytes": \.messageBytesMax, "unsent-bytes": \.http2.unsentBytesMax,
      "connections": \.connectionsMax, "connections-per-address": \.connectionsPerAddressMax,
    ]
  }
}
