import EventLoop
import HTTP2
import Primitives
import Synchronization

/// A server that answers as it is told, right or wrong, and keeps what it was asked.
final class RawServer: Sendable {
  typealias Answer = @Sendable (Int, HTTP2Stream) -> Void

  private let listener: Listener
  private let log: Log

  /// The header fields of each request.
  var requests: [[String: String]] { log.requests.withLock { $0 } }
  var port: Int { listener.port }

  /// `answer` gets the number of the request, from 0, once it is whole.
  init(_ group: EventLoopGroup, limits: HTTP2Limits = HTTP2Limits(), _ answer: @escaping Answer) throws {
    let log = Log()
    self.log = log
    listener = try Listener.listen(on: SocketAddress("127.0.0.1:0")!, group: group, tls: nil) { transport in
      _ = HTTP2Session(
        role: .server, transport: transport, limits: limits, delegate: Connection(log: log, answer: answer))
    }
  }

  func close() async { await listener.close() }

  /// A whole answer of one header block.
  static func refuse(_ stream: HTTP2Stream, _ fields: (String, String)...) {
    stream.respond(list([(":status", "200"), ("content-type", "application/grpc")] + fields), isEnd: true)
  }

  /// A good answer with an empty message.
  static func answer(_ stream: HTTP2Stream, status: String = "0") {
    stream.respond(list([(":status", "200"), ("content-type", "application/grpc")]), isEnd: false)
    stream.write([0, 0, 0, 0, 0])
    stream.finish(list([("grpc-status", status)]))
  }

  private static func list(_ fields: [(String, String)]) -> HeaderList {
    var list = HeaderList()
    for (name, value) in fields { list.append(name, value) }
    return list
  }

  private final class Log: Sendable {
    let requests = Mutex<[[String: String]]>([])
  }

  private final class Connection: HTTP2SessionDelegate {
    private let log: Log
    private let answer: Answer

    init(log: Log, answer: @escaping Answer) {
      self.log = log
      self.answer = answer
    }

    func accept(_ session: HTTP2Session, _ id: Int32) -> HTTP2Stream? {
      let stream = HTTP2Stream(session: session, id: id)
      stream.handler = Request(stream) { [log, answer] headers in
        let index = log.requests.withLock { requests in
          requests.append(headers)
          return requests.count - 1
        }
        answer(index, stream)
      }
      return stream
    }

    func settled() {}
    func goneAway(_ code: HTTP2ErrorCode, _ reason: String) {}
    func streamClosed() {}
    func closed(_ error: (any Error)?) {}
  }

  private final class Request: HTTP2StreamHandler {
    private let stream: HTTP2Stream
    private let whole: ([String: String]) -> Void
    private var headers: [String: String] = [:]

    init(_ stream: HTTP2Stream, _ whole: @escaping ([String: String]) -> Void) {
      self.stream = stream
      self.whole = whole
    }

    func header(_ name: Span<UInt8>, _ value: Span<UInt8>) { headers[name.text] = value.text }
    func headersEnded(isEnd: Bool) {}
    func data(_ bytes: Span<UInt8>) { stream.consume(bytes.count) }
    func ended() { whole(headers) }
    func drained() {}
    func closed(_ code: HTTP2ErrorCode) {}
  }
}
