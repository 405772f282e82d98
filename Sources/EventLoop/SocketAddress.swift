internal import CLinux
internal import Glibc
private import Primitives

/// An IPv4 or IPv6 address with a port.
package enum SocketAddress: Sendable, Hashable, CustomStringConvertible {
  /// The address in host byte order.
  case v4(UInt32, port: UInt16)
  /// The two halves of the address in host byte order.
  case v6(UInt64, UInt64, scope: UInt32, port: UInt16)

  /// Parses a literal such as `127.0.0.1:80` or `[::1]:80`; nil for names and nonsense.
  package init?(_ text: String) {
    guard let (host, port) = Self.split(text) else { return nil }
    self.init(host: host, port: port)
  }

  /// An address literal without brackets, and a port.
  package init?(host: String, port: UInt16) {
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, host, &v4) == 1 {
      self = .v4(UInt32(bigEndian: v4.s_addr), port: port)
    } else if inet_pton(AF_INET6, host, &v6) == 1 {
      self = Self.v6(v6, scope: 0, port: port)
    } else {
      return nil
    }
  }

  /// Splits `host:port`; brackets around an IPv6 literal are taken off. Nil when the port is missing or not a number.
  package static func split(_ text: String) -> (host: String, port: UInt16)? {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var host = text[..<colon]
    if host.first == "[", host.last == "]" {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    return host.isEmpty ? nil : (String(host), port)
  }

  private static let resolver = BlockingPool(name: "resolver", threads: 2, queueMax: 64)

  /// The addresses of `host:port`: a literal at once, a name by the system's resolver on a thread of its own. Throws
  /// INVALID_ARGUMENT for text without a port and UNAVAILABLE for a name that does not resolve.
  package static func resolve(_ text: String) async throws -> [SocketAddress] {
    guard let (host, port) = split(text) else {
      throw ServiceError.invalid("address", "must be host:port")
    }
    if let literal = SocketAddress(host: host, port: port) { return [literal] }
    return try await resolver.run { try lookUp(host, port) }
  }

  private static func lookUp(_ host: String, _ port: UInt16) throws -> [SocketAddress] {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, String(port), &hints, &list)
    defer { if let list { freeaddrinfo(list) } }
    guard result == 0 else {
      throw ServiceError.unavailable(
        "The name of a server does not resolve.",
        cause: StreamError.resolution(host: host, reason: String(cString: gai_strerror(result))))
    }
    var addresses: [SocketAddress] = []
    var entry = list
    while let current = entry {
      if let raw = current.pointee.ai_addr, let address = SocketAddress(raw), !addresses.contains(address) {
        addresses.append(address)
      }
      entry = current.pointee.ai_next
    }
    guard !addresses.isEmpty else {
      throw ServiceError.unavailable(
        "The name of a server does not resolve.", cause: StreamError.resolution(host: host, reason: "no address"))
    }
    return addresses
  }

  package var port: Int {
    switch self {
    case .v4(_, let port), .v6(_, _, _, let port): Int(port)
    }
  }

  /// The same host with another port.
  package func with(port: Int) -> SocketAddress {
    switch self {
    case .v4(let address, _): .v4(address, port: UInt16(truncatingIfNeeded: port))
    case .v6(let high, let low, let scope, _): .v6(high, low, scope: scope, port: UInt16(truncatingIfNeeded: port))
    }
  }

  /// 127.0.0.0/8, ::1 and the first of these inside ::ffff:0:0/96.
  package var isLoopback: Bool {
    switch self {
    case .v4(let address, _): address >> 24 == 127
    case .v6(0, let low, _, _): low == 1 || (low >> 32 == 0xffff && (low >> 24) & 0xff == 127)
    case .v6: false
    }
  }

  /// The address without the port.
  package var host: String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    switch self {
    case .v4(let address, _):
      var raw = in_addr(s_addr: address.bigEndian)
      inet_ntop(AF_INET, &raw, &text, socklen_t(text.count))
    case .v6(let high, let low, _, _):
      var raw = Self.bytes(high, low)
      inet_ntop(AF_INET6, &raw, &text, socklen_t(text.count))
    }
    return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  package var description: String {
    switch self {
    case .v4: "\(host):\(port)"
    case .v6: "[\(host)]:\(port)"
    }
  }

  // MARK: The system's form

  /// AF_INET or AF_INET6.
  var family: Int32 {
    switch self {
    case .v4: AF_INET
    case .v6: AF_INET6
    }
  }

  /// Safety: `raw` must point to a socket address that is as long as its family says.
  init?(_ raw: UnsafePointer<sockaddr>) {
    switch Int32(raw.pointee.sa_family) {
    case AF_INET:
      let value = UnsafeRawPointer(raw).loadUnaligned(as: sockaddr_in.self)
      self = .v4(UInt32(bigEndian: value.sin_addr.s_addr), port: UInt16(bigEndian: value.sin_port))
    case AF_INET6:
      let value = UnsafeRawPointer(raw).loadUnaligned(as: sockaddr_in6.self)
      self = Self.v6(value.sin6_addr, scope: value.sin6_scope_id, port: UInt16(bigEndian: value.sin6_port))
    default:
      return nil
    }
  }

  /// Reads a `sockaddr`. Safety: `raw` must point to a socket address that is as long as its family says.
  package init?(socketAddress raw: UnsafeRawPointer) {
    self.init(raw.assumingMemoryBound(to: sockaddr.self))
  }

  /// Calls `body` with a `sockaddr` and its length.
  package func withSocketAddress<R>(_ body: (UnsafeRawPointer, UInt32) -> R) -> R {
    withSystemAddress { body(UnsafeRawPointer($0), $1) }
  }

  /// Calls `body` with the system's form of the address.
  func withSystemAddress<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    switch self {
    case .v4(let address, let port):
      var value = sockaddr_in()
      value.sin_family = sa_family_t(AF_INET)
      value.sin_port = port.bigEndian
      value.sin_addr.s_addr = address.bigEndian
      return Self.call(&value, body)
    case .v6(let high, let low, let scope, let port):
      var value = sockaddr_in6()
      value.sin6_family = sa_family_t(AF_INET6)
      value.sin6_port = port.bigEndian
      value.sin6_addr = Self.bytes(high, low)
      value.sin6_scope_id = scope
      return Self.call(&value, body)
    }
  }

  private static func call<T, R>(_ value: inout T, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    withUnsafePointer(to: &value) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<T>.size)) }
    }
  }

  private static func v6(_ raw: in6_addr, scope: UInt32, port: UInt16) -> SocketAddress {
    withUnsafeBytes(of: raw) { bytes in
      .v6(
        UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)), scope: scope, port: port)
    }
  }

  private static func bytes(_ high: UInt64, _ low: UInt64) -> in6_addr {
    var raw = in6_addr()
    withUnsafeMutableBytes(of: &raw) { bytes in
      bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
      bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    return raw
  }
}
