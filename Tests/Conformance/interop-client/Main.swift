internal import EventLoop
internal import Glibc
internal import Primitives
internal import RPC

/// `interop-client --server HOST:PORT --case NAME [--tls --ca FILE] [--count N] [--no-probe]`: runs one interoperability
/// case; ends with 0 when it held, else with 1 and a line that says what did not. `--list` prints the names. With
/// `--no-probe` the compression cases do not ask the server to refuse what is not compressed.
@main
enum Main {
  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    do {
      let options = try Options(CommandLine.arguments.dropFirst())
      if options.isList {
        print(InteropCases.all.keys.sorted().joined(separator: "\n"))
        exit(0)
      }
      guard let run = InteropCases.all[options.name] else { throw ServiceError.invalid("--case", "is not known") }
      let tls = options.isTLS ? try TLSContext.client(caPath: options.authority) : nil
      let cases = InteropCases(
        target: options.server, group: EventLoopGroup(count: 1), tls: tls, soakCount: options.count,
        expectsCompression: options.isProbing)
      try await run(cases)
      print("passed: \(options.name)")
      exit(0)
    } catch {
      print("failed: \(error)")
      exit(1)
    }
  }
}

/// The command line.
private struct Options {
  private(set) var server = ""
  private(set) var name = ""
  private(set) var count = 10
  private(set) var isTLS = false
  private(set) var isProbing = true
  private(set) var authority: String?
  private(set) var isList = false

  init(_ arguments: some Sequence<String>) throws {
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      switch argument {
      case "--tls": isTLS = true
      case "--no-probe": isProbing = false
      case "--list": isList = true
      default:
        guard let value = rest.next() else { throw ServiceError.invalid(argument, "needs a value") }
        try take(argument, value)
      }
    }
  }

  private mutating func take(_ argument: String, _ value: String) throws {
    switch argument {
    case "--server": server = value
    case "--case": name = value
    case "--ca": authority = value
    case "--count":
      guard let number = Int(value), number > 0 else { throw ServiceError.invalid(argument, "is no count") }
      count = number
    default: throw ServiceError.invalid(argument, "is not known")
    }
  }
}
