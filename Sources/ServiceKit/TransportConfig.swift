package import EventLoop
package import Primitives
package import RPC

/// What every executable reads of its surroundings: loops, certificates, where the others are.
package struct TransportConfig: Sendable {
  package let loops: Int
  package let tls: TLSPaths?
  /// `host:port` of each neighbour by name, such as `identity`; only those that are set.
  package let addresses: [String: String]
  /// Where metrics and health are shown; nil for nowhere.
  package let adminListen: SocketAddress?

  package struct TLSPaths: Sendable {
    package let certificate: String
    package let key: String
    package let authority: String
  }

  private static let neighbours = [
    "identity", "vault", "recipients", "confirmation", "delivery", "entitlement", "notifications",
  ]

  /// `LOOPS` (1 to 64), `TLS_CERTIFICATE_PATH`, `TLS_KEY_PATH`, `TLS_CA_PATH` (PEM files, all three unless
  /// `ALLOW_PLAINTEXT` is true), `<NAME>_ADDRESS` for each neighbour, `ADMIN_LISTEN` (a loopback address unless
  /// `ADMIN_ALLOW_ANY_ADDRESS` is true; off when not set).
  package init(_ configuration: inout Configuration) {
    loops = configuration.integer("LOOPS", default: 1, in: 1...64)
    if configuration.flag("ALLOW_PLAINTEXT", default: false) {
      tls = nil
    } else {
      tls = TLSPaths(
        certificate: configuration.text("TLS_CERTIFICATE_PATH"), key: configuration.text("TLS_KEY_PATH"),
        authority: configuration.text("TLS_CA_PATH"))
    }
    var addresses: [String: String] = [:]
    for name in TransportConfig.neighbours {
      guard let address = configuration.optional("\(name.uppercased())_ADDRESS") else { continue }
      if SocketAddress.split(address) == nil {
        configuration.fault("\(name.uppercased())_ADDRESS: must be host:port")
      }
      addresses[name] = address
    }
    self.addresses = addresses
    adminListen = TransportConfig.adminListen(&configuration)
  }

  private static func adminListen(_ configuration: inout Configuration) -> SocketAddress? {
    let isOpen = configuration.flag("ADMIN_ALLOW_ANY_ADDRESS", default: false)
    guard let text = configuration.optional("ADMIN_LISTEN") else { return nil }
    guard let address = SocketAddress(text) else {
      configuration.fault("ADMIN_LISTEN: must be address:port, such as 127.0.0.1:7111")
      return nil
    }
    if !isOpen, !address.isLoopback {
      configuration.fault("ADMIN_LISTEN: must be a loopback address, unless ADMIN_ALLOW_ANY_ADDRESS is true")
    }
    return address
  }
}

/// The channels to the neighbours, over mutual TLS; each accepts only the certificate of the service it is meant for.
package struct Neighbours: Sendable {
  private let config: TransportConfig
  private let group: EventLoopGroup
  /// What the channels use; nil without TLS.
  package let tls: TLSContext?
  private let calls: CallMetrics?

  /// With `metrics`, the calls are counted there.
  package init(_ config: TransportConfig, group: EventLoopGroup, metrics: Metrics? = nil) throws {
    self.config = config
    self.group = group
    calls = metrics.map { CallMetrics(.client, $0) }
    tls = try config.tls.map { paths in
      try TLSContext.client(caPath: paths.authority, certificatePath: paths.certificate, keyPath: paths.key)
    }
  }

  /// A channel to the named service. Throws when its address is not set. It connects at the first call.
  package func channel(to name: String) throws -> Channel {
    guard let address = config.addresses[name] else {
      throw ConfigurationFault(text: "\(name.uppercased())_ADDRESS: is not set")
    }
    let identity = tls == nil ? nil : Gate.identityPrefix + name
    var configuration = ChannelConfiguration()
    if let calls { configuration.onCallEnd = { calls.record($0, $1, $2) } }
    return Channel(
      target: address, group: group, tls: tls, expectedIdentity: identity, configuration: configuration)
  }
}

/// A setting that keeps the service from starting.
package struct ConfigurationFault: Error, CustomStringConvertible {
  package let text: String
  package init(text: String) { self.text = text }
  package var description: String { text }
}
