import API
import EventLoop
import Primitives
import RPC
import TestKit

/// One method whose answer a test supplies, served on the loopback: `test.Probe/Go`, with the messages of the health
/// protocol.
struct ProbeService: Service {
  typealias Request = GRPCHealthV1.HealthCheckRequest
  typealias Response = GRPCHealthV1.HealthCheckResponse

  static let method = MethodDescriptor(service: "test.Probe", name: "Go", kind: .unary)
  static let descriptor = ServiceDescriptor(name: "test.Probe", methods: [method])
  let handlers: [MethodHandler]

  init(_ body: @escaping @Sendable (CallContext) async throws -> Void) {
    handlers = [
      .unary(Self.method) { (_: Request, context: CallContext) in
        try await body(context)
        return Response(status: .serving)
      }
    ]
  }
}

/// Servers and channels of one test, on one group; taken down together.
struct ProbeRig {
  let group: EventLoopGroup
  private var servers: [Server] = []
  private var channels: [Channel] = []

  init(group: EventLoopGroup) { self.group = group }

  /// Serves and returns a channel to it.
  mutating func serve(
    _ services: [any Service], configure: (inout ServerConfiguration) -> Void = { _ in }
  ) throws -> Channel {
    var configuration = ServerConfiguration(address: TestRuntime.loopback)
    configure(&configuration)
    let server = Server(configuration: configuration, services: services, group: group)
    try server.start()
    servers.append(server)
    return channel(to: server.port)
  }

  mutating func channel(
    to port: Int, tls: TLSContext? = nil, identity: String? = nil, configuration: ChannelConfiguration = .init()
  ) -> Channel {
    let channel = Channel(
      target: "127.0.0.1:\(port)", group: group, tls: tls, expectedIdentity: identity, configuration: configuration)
    channels.append(channel)
    return channel
  }

  var lastPort: Int { servers.last?.port ?? 0 }

  func end() async {
    for channel in channels { await channel.shutdown() }
    for server in servers { await server.shutdown(grace: .zero) }
  }
}

/// Calls the probe.
func go(_ channel: Channel, _ options: CallOptions = CallOptions(timeout: .seconds(60))) async throws {
  let _: ProbeService.Response = try await channel.unary(ProbeService.method, ProbeService.Request(), options)
}
