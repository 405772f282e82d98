internal import EventLoop
internal import RPC

/// The peers' `echo.Echo`: Unary gives the message back, Upload counts. Three methods more are for the tests that attack
/// a server: Exchange gives back each message of a stream, Repeat sends its message until the caller has enough, Tally
/// says what the server has counted.
struct EchoService: Service {
  static let descriptor = ServiceDescriptor(
    name: "echo.Echo",
    methods: [
      MethodDescriptor(service: "echo.Echo", name: "Unary", kind: .unary),
      MethodDescriptor(service: "echo.Echo", name: "Upload", kind: .clientStreaming),
      MethodDescriptor(service: "echo.Echo", name: "Exchange", kind: .bidirectional),
      MethodDescriptor(service: "echo.Echo", name: "Repeat", kind: .serverStreaming),
      MethodDescriptor(service: "echo.Echo", name: "Tally", kind: .unary),
    ])

  let tally: Tally

  var handlers: [MethodHandler] {
    [
      .unary(Self.descriptor.methods[0]) { (request: EchoMsg, _: CallContext) in request },
      .clientStreaming(Self.descriptor.methods[1]) { (requests: RequestStream<EchoMsg>, _: CallContext) in
        try await tally.counting {
          var summary = UploadSummary()
          for try await request in requests {
            summary.messages += 1
            summary.bytes += Int64(request.payload.count)
          }
          return summary
        }
      },
      .bidirectional(Self.descriptor.methods[2]) {
        (requests: RequestStream<EchoMsg>, responses: ResponseWriter<EchoMsg>, _: CallContext) in
        try await tally.counting {
          for try await request in requests { try await responses.write(request) }
        }
      },
      .serverStreaming(Self.descriptor.methods[3]) {
        (request: EchoMsg, responses: ResponseWriter<EchoMsg>, _: CallContext) in
        try await tally.counting {
          while true { try await responses.write(request) }
        }
      },
      .unary(Self.descriptor.methods[4]) { (_: EchoMsg, _: CallContext) in
        var answer = EchoMsg()
        answer.payload = Array(tally.text.utf8)
        return answer
      },
    ]
  }
}
