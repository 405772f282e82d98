import EventLoop
import Postgres
import Primitives
import RPC
import Synchronization
import TestKit
import Testing

@testable import ServiceKit

/// What a caller and the log learn of a fault.
@Suite struct FaultTests {
  private struct Odd: Error, CustomStringConvertible {
    var description: String { "the inside of the service" }
  }

  @Test("ServiceKit an escaped error is INTERNAL with the request id that its log line has, and nothing of its cause")
  func escaped() async throws {
    try await TestRuntime.with(name: "faults", migrations: []) { runtime in
      let lines = Mutex<[[String: String]]>([])
      let database = runtime.database
      let bodies = Mutex<[@Sendable () async throws -> Void]>([
        { throw Odd() }, { _ = try await database.query("SELECT nothing FROM nowhere") },
      ])
      var rig = ProbeRig(group: runtime.group)
      let probe = ProbeService { _ in
        if let body = bodies.withLock({ $0.popLast() }) { try await body() }
      }
      let channel = try rig.serve([probe]) { configuration in
        configuration.onCallEnd = { context, error, duration, bytesIn, bytesOut in
          var line: [String: String] = [:]
          for (name, value) in CallLog.fields(context, error, duration, bytesIn, bytesOut) {
            if case .text(let text) = value { line[name] = text }
          }
          lines.withLock { $0.append(line) }
        }
      }
      var options = CallOptions(timeout: .seconds(60))
      options.metadata.append("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
      for cause in ["nowhere", "the inside of the service"] {
        let error = try await refusal { try await go(channel, options) }
        #expect(error.code == .internal && error.reason == "INTERNAL")
        #expect(!error.message.contains(cause))
        let line = try #require(lines.withLock { $0.last })
        #expect(error.requestID?.utf8.count == 16 && line["request_id"] == error.requestID)
        #expect(line["trace"] == "0af7651916cd43dd8448eb211c80319c")
        #expect(line["code"] == "INTERNAL" && line["method"] == "/test.Probe/Go" && line["caller"] == "anonymous")
        #expect(line["cause"]?.contains(cause) == true)
      }
      try await go(channel, options)
      let line = try #require(lines.withLock { $0.last })
      #expect(line["code"] == "OK" && line["cause"] == "" && line["request_id"]?.utf8.count == 16)
      await rig.end()
    }
  }

  @Test("ServiceKit a fault keeps its request id on the way through another service")
  func relayed() async throws {
    let group = EventLoopGroup(count: 1)
    var rig = ProbeRig(group: group)
    let inner = try rig.serve([ProbeService { _ in throw Odd() }])
    let seen = Mutex<[String?]>([])
    let outer = try rig.serve([
      ProbeService { context in
        do {
          try await go(inner, context.callOptions())
        } catch let error as ServiceError {
          seen.withLock { $0.append(error.requestID) }
          throw error
        }
      }
    ])
    let error = try await refusal { try await go(outer) }
    #expect(error.requestID != nil && [error.requestID] == seen.withLock { $0 })
    await rig.end()
    await group.shutdown()
  }
}
