// Emits a service: the methods' descriptors, the protocol that a server implements, and the client.

struct ServiceSource {
  private let service: ServiceType
  private let types: Types
  private let namespace: String
  private let fileSet: [UInt8]
  private var methodsName: String { "\(namespace).\(service.name)Methods" }

  init(_ service: ServiceType, _ types: Types, namespace: String, fileSet: [UInt8]) {
    self.fileSet = fileSet
    self.service = service
    self.types = types
    self.namespace = namespace
  }

  /// Declarations inside the namespace.
  func declare(in source: inout SourceText) {
    declareMethods(in: &source)
    source.line()
    declareProtocol(in: &source)
    source.line()
    declareClient(in: &source)
  }

  private func declareMethods(in source: inout SourceText) {
    source.line("/// The methods of `\(service.fullName)`.")
    source.block("package enum \(service.name)Methods") { source in
      for method in service.methods {
        source.line("package static let \(Names.escaped(Names.function(method.name))) = RPC.MethodDescriptor(")
        source.indented([
          "service: \"\(service.fullName)\", name: \"\(method.name)\", kind: .\(kind(method)),",
          "isIdempotent: \(method.isIdempotent))",
        ])
      }
      source.line()
      source.line("/// All of them, in the proto's order.")
      source.line("package static let descriptor = RPC.ServiceDescriptor(")
      source.line("  name: \"\(service.fullName)\",")
      source.line("  methods: [")
      source.indented(service.methods.map { "  \(Names.escaped(Names.function($0.name)))," })
      source.line("  ],")
      source.line("  files: \"\"\"")
      let lines = Array(Base64Lines(fileSet))
      for line in lines.dropLast() { source.line("    \(line)\\") }
      source.line("    \(lines.last ?? "")")
      source.line("    \"\"\")")
    }
  }

  private func kind(_ method: ServiceType.Method) -> String {
    switch (method.streamsRequests, method.streamsResponses) {
    case (false, false): "unary"
    case (true, false): "clientStreaming"
    case (false, true): "serverStreaming"
    case (true, true): "bidirectional"
    }
  }

  // MARK: server

  private func declareProtocol(in source: inout SourceText) {
    source.comment(service.comment)
    source.block("package protocol \(service.name): RPC.Service") { source in
      for (index, method) in service.methods.enumerated() {
        if index > 0 { source.line() }
        source.comment(method.comment)
        source.line("func \(Names.escaped(Names.function(method.name)))(")
        source.indented([serverParameters(method).joined(separator: ", ")])
        source.line(
          ") async throws" + (method.streamsResponses ? "" : " -> \(types.swiftName(method.output))"))
      }
    }
  }

  private func serverParameters(_ method: ServiceType.Method) -> [String] {
    let input = types.swiftName(method.input)
    let output = types.swiftName(method.output)
    let request = method.streamsRequests ? "_ requests: RPC.RequestStream<\(input)>" : "_ request: \(input)"
    let responses = method.streamsResponses ? ["_ responses: RPC.ResponseWriter<\(output)>"] : []
    return [request] + responses + ["_ context: RPC.CallContext"]
  }

  /// What the protocol supplies, in an extension at the top level.
  func extend(in source: inout SourceText) {
    source.line()
    source.block("extension \(namespace).\(service.name)") { source in
      source.line("package static var descriptor: RPC.ServiceDescriptor { \(methodsName).descriptor }")
      source.line()
      source.line("package var handlers: [RPC.MethodHandler] {")
      source.line("  [")
      for method in service.methods {
        let function = Names.function(method.name)
        let names = ["$0", "$1"] + (method.streamsResponses ? ["$2"] : [])
        source.indented([
          "  .\(kind(method))(\(methodsName).\(Names.escaped(function))) {",
          "    try await self.\(function)(\(names.joined(separator: ", ")))",
          "  },",
        ])
      }
      source.line("  ]")
      source.line("}")
    }
  }

  // MARK: client

  private func declareClient(in source: inout SourceText) {
    source.line("/// Calls `\(service.fullName)`.")
    source.block("package struct \(service.name)Client: Sendable") { source in
      source.line("private let channel: RPC.Channel")
      source.line()
      source.block("package init(_ channel: RPC.Channel)") { $0.line("self.channel = channel") }
      for method in service.methods { declareCall(method, in: &source) }
    }
  }

  private func declareCall(_ method: ServiceType.Method, in source: inout SourceText) {
    let input = types.swiftName(method.input)
    let output = types.swiftName(method.output)
    let function = Names.escaped(Names.function(method.name))
    let result =
      switch (method.streamsRequests, method.streamsResponses) {
      case (false, false): output
      case (false, true): "RPC.ResponseStream<\(output)>"
      case (true, false): "RPC.ClientStreamingCall<\(input), \(output)>"
      case (true, true): "RPC.BidirectionalCall<\(input), \(output)>"
      }
    source.line()
    source.comment(method.comment)
    source.line("package func \(function)(")
    let request = method.streamsRequests ? "" : "_ request: \(input), "
    source.indented([request + "_ options: RPC.CallOptions = RPC.CallOptions()"])
    source.block(") async throws -> \(result)") { source in
      let arguments = method.streamsRequests ? "options" : "request, options"
      source.line("try await channel.\(kind(method))(\(methodsName).\(function), \(arguments))")
    }
  }
}
