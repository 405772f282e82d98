internal import Primitives

/// `grpc.reflection.v1` and `v1alpha`, which differ in their names alone: tells a client the protos of what is served.
/// Its messages are read and written by hand, because the layers that generate them stand above this one. Who may call
/// it is for `admit` and `authenticate` to say.
package struct ReflectionService: Service {
  package static let descriptor = ServiceDescriptor(name: "grpc.reflection.v1.ServerReflection", methods: methods)
  /// The one method of each version.
  package static let methods = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"].map {
    MethodDescriptor(service: $0, name: "ServerReflectionInfo", kind: .bidirectional)
  }

  private static let notFound: Int64 = 5
  private static let invalidArgument: Int64 = 3
  private let index: ReflectionIndex

  /// Of these services; itself is not listed.
  package init(services: [any Service]) {
    index = ReflectionIndex(services.map { type(of: $0).descriptor })
  }

  package var handlers: [MethodHandler] {
    Self.methods.map { method in
      MethodHandler(
        method: method,
        body: .streaming { source, sink, _ in
          while let request = try await source.next() {
            try await sink.send(Frame.encode(answer(request)), .asCall)
          }
        })
    }
  }

  /// The `ServerReflectionResponse` to a `ServerReflectionRequest`.
  func answer(_ request: [UInt8]) -> [UInt8] {
    var host = ""
    var answer: DetailWriter?
    DetailReader.forEachField(request[...]) { number, field in
      guard case .bytes(let content) = field else { return }
      let text = String(decoding: content, as: UTF8.self)
      switch number {
      case 1: host = text
      case 3: answer = files(index.files(named: text))
      case 4: answer = files(index.files(declaring: text))
      case 5: answer = error(Self.notFound, "There are no extensions.")
      case 6: answer = extensions(of: text)
      case 7: answer = list()
      default: break
      }
    }
    var response = DetailWriter()
    response.text(1, host)
    response.bytes(2, request)
    response.raw((answer ?? error(Self.invalidArgument, "The request asks for nothing.")).output)
    return response.output
  }

  private func files(_ files: [[UInt8]]?) -> DetailWriter {
    guard let files else { return error(Self.notFound, "It is not known here.") }
    var list = DetailWriter()
    for file in files { list.bytes(1, file) }
    return field(4, list)
  }

  private func extensions(of type: String) -> DetailWriter {
    guard index.files(declaring: type) != nil else { return error(Self.notFound, "It is not known here.") }
    var none = DetailWriter()
    none.text(1, type)
    return field(5, none)
  }

  private func list() -> DetailWriter {
    var list = DetailWriter()
    for name in index.services {
      var service = DetailWriter()
      service.text(1, name)
      list.bytes(1, service)
    }
    return field(6, list)
  }

  private func error(_ code: Int64, _ message: String) -> DetailWriter {
    var error = DetailWriter()
    error.number(1, code)
    error.text(2, message)
    return field(7, error)
  }

  private func field(_ number: UInt64, _ content: DetailWriter) -> DetailWriter {
    var field = DetailWriter()
    field.bytes(number, content)
    return field
  }
}
