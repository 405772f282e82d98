internal import EventLoop
internal import Glibc
internal import RPC

/// The peers' `echo.Echo`: Unary gives the message back, Upload counts.
struct EchoService: Service {
  static let descriptor = ServiceDescriptor(
    name: "echo.Echo",
    methods: [
      MethodDescriptor(service: "echo.Echo", name: "Unary", kind: .unary),
      MethodDescriptor(service: "echo.Echo", name: "Upload", kind: .clientStreaming),
    ])

  var handlers: [MethodHandler] {
    [
      .unary(Self.descriptor.methods[0]) { (request: EchoMsg, _: CallContext) in request },
      .clientStreaming(Self.descriptor.methods[1]) { (requests: RequestStream<EchoMsg>, _: CallContext) in
        var summary = UploadSummary()
        for try await request in requests {
          summary.messages += 1
          summary.bytes += Int64(request.payload.count)
        }
        return summary
      },
    ]
  }
}

@main
enum Main {
  /// `echo-server --port N`: one loop, plaintext, on the loopback, until it is ended.
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard let flag = arguments.firstIndex(of: "--port"), flag + 1 < arguments.count,
      let address = SocketAddress("127.0.0.1:\(arguments[flag + 1])")
    else {
      print("usage: echo-server --port N")
      exit(2)
    }
    let server = Server(
      configuration: ServerConfiguration(address: address), services: [EchoService()], group: EventLoopGroup(count: 1))
    try server.start()
    print("listening on \(server.port)")
    while true { try await Task.sleep(for: .seconds(3600)) }
  }
}
