internal import EventLoop
internal import Glibc
internal import Primitives
internal import RPC
internal import ServiceKit

/// `interop-server [--port N] [--tls --cert FILE --key FILE --ca FILE]`: gRPC's test service, health and reflection on
/// the loopback until SIGTERM; says `listening on N` once it does. Without --port the system picks one.
@main
enum Main {
  static func main() async {
    ProcessSignals.takeOver()
    do {
      let options = try Options(CommandLine.arguments.dropFirst())
      var configuration = ServerConfiguration(address: .v4(0x7F00_0001, port: options.port))
      configuration.tls = try options.tls()
      configuration.servesReflection = true
      let service = InteropService()
      let health = HealthService(services: [service], database: nil)
      let server = Server(configuration: configuration, services: [service, health], group: EventLoopGroup(count: 1))
      try server.start()
      print("listening on \(server.port)")
      fflush(nil)
      await ProcessSignals.waitForStop()
      health.drain()
      await server.shutdown(grace: .seconds(10))
      exit(0)
    } catch {
      print("interop-server: \(error)")
      exit(2)
    }
  }
}

/// The command line.
private struct Options {
  private(set) var port: UInt16 = 0
  private var isTLS = false
  private var paths: [String: String] = [:]

  init(_ arguments: some Sequence<String>) throws {
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      if argument == "--tls" {
        isTLS = true
        continue
      }
      guard let value = rest.next() else { throw ServiceError.invalid(argument, "needs a value") }
      switch argument {
      case "--port":
        guard let number = UInt16(value) else { throw ServiceError.invalid(argument, "is no port") }
        port = number
      case "--cert", "--key", "--ca": paths[argument] = value
      default: throw ServiceError.invalid(argument, "is not known")
      }
    }
  }

  func tls() throws -> TLSContext? {
    guard isTLS else { return nil }
    guard let certificate = paths["--cert"], let key = paths["--key"] else {
      throw ServiceError.invalid("--tls", "needs --cert and --key")
    }
    return try TLSContext.server(certificatePath: certificate, keyPath: key, caPath: paths["--ca"])
  }
}
