import EventLoop
import HTTP2
import Primitives
import Synchronization
import Testing

@testable import RPC

/// R1 and wire.md's row "tracing", without and with a wire.
@Suite struct TraceTests {
  static let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  @Test("RPC a trace goes on with its id and flags and a span of its own")
  func continued() throws {
    let first = TraceContext(continuing: Self.good, state: "a=1,b=2")
    let second = TraceContext(continuing: Self.good, state: "a=1,b=2")
    #expect(first.traceIDText == "0af7651916cd43dd8448eb211c80319c")
    #expect(first.flags == 1 && first.state == "a=1,b=2")
    #expect(first.spanIDText != "b7ad6b7169203331" && first.spanID != second.spanID)
    #expect(first.traceparent == "00-0af7651916cd43dd8448eb211c80319c-\(first.spanIDText)-01")
    #expect(TraceContext(continuing: first.traceparent).traceID == first.traceID)
  }

  @Test(
    "RPC what is no traceparent begins a new trace",
    arguments: [
      nil, "", "nonsense", "00-00000000000000000000000000000000-b7ad6b7169203331-01",
      "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
      "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
      "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", good + "-x", good + "0", String(good.dropLast()),
      "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
    ])
  func begun(text: String?) {
    let trace = TraceContext(continuing: text, state: "a=1")
    #expect(trace.traceIDText != "0af7651916cd43dd8448eb211c80319c" && trace.state == nil && trace.flags == 0)
    #expect(TraceContext.parse(trace.traceparent.utf8) != nil)
  }

  @Test("RPC a later version of traceparent is read as far as it is known")
  func laterVersion() {
    let later = "cc" + Self.good.dropFirst(2)
    #expect(TraceContext(continuing: later + "-more").traceIDText == "0af7651916cd43dd8448eb211c80319c")
    #expect(TraceContext(continuing: later).traceparent.hasPrefix("00-0af7"))
    #expect(TraceContext(continuing: Self.good.dropLast(2) + "ff").flags == 3)
  }

  @Test("RPC tracestate of 512 bytes is passed on, of 513 it is dropped, and its parts are joined")
  func state() {
    let full = String(repeating: "x", count: 512)
    #expect(TraceContext(continuing: Self.good, state: full).state == full)
    #expect(TraceContext(continuing: Self.good, state: full + "x").state == nil)
    var metadata = Metadata()
    metadata.append("tracestate", "a=1")
    metadata.append("other", "b=2")
    metadata.append("tracestate", "c=3")
    #expect(RequestHeaders(metadata: metadata).list("tracestate") == "a=1,c=3")
  }

  @Test("RPC ids drawn without the system differ")
  func ids() {
    var source = TraceIDSource()
    var seen: Set<UInt64> = []
    for _ in 0..<10_000 {
      let fresh = source.next()
      #expect(fresh.span != 0 && fresh.low != 0)
      seen.insert(fresh.span)
      seen.insert(fresh.high)
    }
    #expect(seen.count == 20_000)
  }

  private static func carried(_ headers: [(String, String?)]) async throws -> [String] {
    let seen = Mutex<[String]>([])
    let handler = MethodHandler.unary(TestService.unary) { (note: Note, context: CallContext) in
      let options = context.callOptions()
      seen.withLock {
        $0 = [
          options.metadata["traceparent"] ?? "none", options.metadata["tracestate"] ?? "none", context.traceparent,
        ]
      }
      return note
    }
    _ = try await WireTests.response("/test.Notes/Unary", headers, handler: handler)
    return seen.withLock { $0 }
  }

  @Test("RPC a call carries its caller's trace to the calls it makes")
  func wire() async throws {
    let carried = try await Self.carried([("traceparent", Self.good), ("tracestate", "a=1,b=2")])
    #expect(carried[0].hasPrefix("00-0af7651916cd43dd8448eb211c80319c-") && carried[0].hasSuffix("-01"))
    #expect(carried[0] != Self.good)
    #expect(carried[1] == "a=1,b=2")
    // One call is one span, however often it is asked for.
    #expect(carried[2] == carried[0])
    let begun = try await Self.carried([("traceparent", "nonsense"), ("tracestate", "a=1")])
    #expect(TraceContext.parse(begun[0].utf8) != nil && begun[1] == "none" && begun[2] == begun[0])
  }

  @Test("RPC a call made on behalf of an event carries its trace unless told another")
  func taskLocal() async throws {
    let handler = MethodHandler.unary(TestService.unary) { (_: Note, context: CallContext) in
      Note(context.trace.traceIDText)
    }
    try await Rig.run([handler]) { rig in
      let trace = TraceContext(continuing: Self.good)
      let inside = try await TraceContext.$current.withValue(trace) { try await rig.unary(Note("")) }
      #expect(inside.text == "0af7651916cd43dd8448eb211c80319c")
      var options = CallOptions(timeout: .seconds(20))
      options.metadata.append("traceparent", "00-11111111111111111111111111111111-b7ad6b7169203331-00")
      let named = try await TraceContext.$current.withValue(trace) { try await rig.unary(Note(""), options) }
      #expect(named.text == "11111111111111111111111111111111")
    }
  }
}
