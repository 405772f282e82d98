internal import EventLoop
internal import Primitives

/// Where a channel's connections go.
struct ChannelTarget: Sendable {
  private enum Way: Sendable {
    case network(tls: TLSContext?, serverName: String?, expectedIdentity: String?)
    case inProcess(Server)
  }

  /// `host:port`, as the calls' `:authority` says it.
  let authority: String
  private let parts: [String]
  /// The addresses, when no name need be looked up.
  let literals: [SocketAddress]?
  private let way: Way

  /// `host:port`, or several with commas between; with `tls`, the server's certificate must name the (first) host, or
  /// `expectedIdentity`.
  init(_ text: String, tls: TLSContext?, expectedIdentity: String?) {
    parts = text.split(separator: ",").map { String($0) }
    authority = parts.first ?? text
    let addresses = parts.compactMap { SocketAddress($0) }
    literals = addresses.count == parts.count && !addresses.isEmpty ? addresses : nil
    let name = literals == nil ? SocketAddress.split(authority)?.host : nil
    way = .network(tls: tls, serverName: name, expectedIdentity: expectedIdentity)
  }

  /// A server of this process, over pairs of sockets.
  init(_ server: Server) {
    authority = "localhost"
    parts = []
    literals = [.v4(0x7F00_0001, port: 0)]
    way = .inProcess(server)
  }

  var isSecure: Bool {
    if case .network(.some, _, _) = way { true } else { false }
  }

  /// The addresses now, each once.
  func resolve() async throws -> [SocketAddress] {
    var addresses: [SocketAddress] = []
    for part in parts {
      for address in try await SocketAddress.resolve(part) where !addresses.contains(address) {
        addresses.append(address)
      }
    }
    guard !addresses.isEmpty else { throw ServiceError.unavailable("The service's name has no address.") }
    return addresses
  }

  func connect(_ address: SocketAddress, on loop: EventLoop, timeout: Duration) async throws -> ByteStream {
    switch way {
    case .network(let tls, let serverName, let expectedIdentity):
      try await ByteStream.connect(
        to: address, on: loop, tls: tls, serverName: serverName, expectedIdentity: expectedIdentity, timeout: timeout)
    case .inProcess(let server): try server.connect(from: loop)
    }
  }
}
