internal import API
internal import EventLoop
internal import Glibc
internal import HTTPServer
internal import Primitives
internal import ServiceKit

@main
struct Main {
  static func main() async {
    ProcessSignals.takeOver()
    var configuration = Configuration.process()
    Log.configure(service: "gateway", level: ServiceMain.logLevel(&configuration))
    do {
      let config = try GatewayConfig(&configuration)
      switch CommandLine.arguments.dropFirst().first {
      case "serve" where CommandLine.arguments.count == 2: try await serve(config)
      case "migrate" where CommandLine.arguments.count == 2: print("nothing to apply: gateway has no database")
      case "check" where CommandLine.arguments.count == 2: try check(config)
      default:
        print("usage: gateway serve | migrate | check")
        exit(2)
      }
    } catch {
      Log.error("stopped", ["error": .text("\(error)")])
      exit(1)
    }
    exit(0)
  }

  private static func serve(_ config: GatewayConfig) async throws {
    let group = EventLoopGroup(count: config.transport.loops)
    let metrics = Metrics()
    ProcessMetrics.add(to: metrics, group: group)
    let neighbours = try Neighbours(config.transport, group: group, metrics: metrics)
    let site = Site(
      forms: Forms(publicURL: config.publicURL),
      verification: VerificationPages(identity: .init(try neighbours.channel(to: "identity"))),
      prompts: PromptPages(recipients: .init(try neighbours.channel(to: "recipients"))),
      messages: MessagePages(
        delivery: .init(try neighbours.channel(to: "delivery")),
        pool: BlockingPool(name: "gateway", threads: 2, queueMax: 64)))
    let server = try HTTPServer(address: config.listen, loop: group.next()) { await site.answer($0) }
    let admin = try config.transport.adminListen.map {
      try AdminServer(address: $0, loop: group.next(), metrics: metrics) { true }
    }
    let certificates = CertificateWatch.start(config.transport, contexts: [neighbours.tls], group: group)
    Log.info("serving", ["port": .number(Int64(server.port)), "admin_port": .number(Int64(admin?.port ?? 0))])
    await ProcessSignals.waitForStop()
    Log.info("stopping")
    certificates?.cancel()
    await server.shutdown(grace: .seconds(10))
    await admin?.shutdown()
    Log.info("stopped")
  }

  private static func check(_ config: GatewayConfig) throws {
    let neighbours = try Neighbours(config.transport, group: EventLoopGroup(count: 1))
    for name in ["identity", "recipients", "delivery"] { _ = try neighbours.channel(to: name) }
    print("settings and certificates are in order")
  }
}

/// `WEB_LISTEN` (address:port), `PUBLIC_URL`, and those of `TransportConfig`.
struct GatewayConfig: Sendable {
  let transport: TransportConfig
  let listen: SocketAddress
  let publicURL: String

  init(_ configuration: inout Configuration) throws {
    transport = TransportConfig(&configuration)
    let listen = SocketAddress(configuration.text("WEB_LISTEN"))
    if listen == nil { configuration.fault("WEB_LISTEN: must be address:port, such as 127.0.0.1:7180") }
    publicURL = configuration.text("PUBLIC_URL")
    guard let listen, configuration.faults.isEmpty else {
      throw ConfigurationFault(text: configuration.faults.joined(separator: "; "))
    }
    self.listen = listen
  }
}
