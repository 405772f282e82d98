internal import EventLoop
internal import Glibc
internal import RPC

/// `echo-server --port N [--limit NAME=VALUE]... [--cert FILE --key FILE [--ca FILE]]`: one loop on the loopback until
/// SIGTERM, then it lets calls finish for 10 s; SIGHUP has the certificate read again. Port 0 lets the system pick one.
@main
enum Main {
  static func main() async throws {
    guard let options = Options(CommandLine.arguments.dropFirst()) else {
      print("usage: echo-server --port N [--limit NAME=VALUE]... [--cert FILE --key FILE [--ca FILE]]")
      exit(2)
    }
    var configuration = ServerConfiguration(address: .v4(0x7F00_0001, port: options.port))
    configuration.limits = options.limits
    configuration.tls = try options.tls()
    let tally = Tally()
    configuration.onConnectionFault = { tally.count(fault: $0) }
    Signals.takeOver()
    let server = Server(
      configuration: configuration, services: [EchoService(tally: tally)], group: EventLoopGroup(count: 1))
    try server.start()
    print("listening on \(server.port)")
    fflush(nil)
    while Signals.next() == SIGHUP { try configuration.tls?.reload() }
    await server.shutdown(grace: .seconds(10))
    exit(0)
  }
}

/// The command line.
private struct Options {
  private(set) var port: UInt16 = 0
  private(set) var limits = ServerLimits()
  private var paths: [String: String] = [:]

  init?(_ arguments: some Sequence<String>) {
    var rest = arguments.makeIterator()
    var isPortGiven = false
    while let argument = rest.next() {
      guard let value = rest.next() else { return nil }
      switch argument {
      case "--port":
        guard let number = UInt16(value) else { return nil }
        port = number
        isPortGiven = true
      case "--limit":
        let parts = value.split(separator: "=")
        guard parts.count == 2, let number = Double(String(parts[1])), limits.set(String(parts[0]), number) else {
          return nil
        }
      case "--cert", "--key", "--ca": paths[argument] = value
      default: return nil
      }
    }
    if !isPortGiven { return nil }
  }

  func tls() throws -> TLSContext? {
    guard let certificate = paths["--cert"], let key = paths["--key"] else { return nil }
    return try TLSContext.server(certificatePath: certificate, keyPath: key, caPath: paths["--ca"])
  }
}

/// SIGTERM and SIGHUP through a pipe.
private enum Signals {
  private static let channel: (reader: Int32, writer: Int32) = {
    var descriptors: [Int32] = [-1, -1]
    _ = pipe(&descriptors)
    return (descriptors[0], descriptors[1])
  }()

  static func takeOver() {
    signal(SIGPIPE, SIG_IGN)
    precondition(channel.reader >= 0, "a process has room for a pipe at its start")
    for number in [SIGTERM, SIGHUP] {
      signal(number) { received in
        var byte = UInt8(truncatingIfNeeded: received)
        _ = write(Signals.channel.writer, &byte, 1)
      }
    }
  }

  /// Waits for the next one, and keeps the thread meanwhile: the main thread has nothing else to do.
  static func next() -> Int32 {
    var byte: UInt8 = 0
    while read(channel.reader, &byte, 1) < 0, errno == EINTR {}
    return Int32(byte)
  }
}
