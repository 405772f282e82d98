import API
import EventLoop
import Glibc
import Postgres
import Primitives
import RPC
import Synchronization
import TestKit
import Testing

@testable import ServiceKit

@Suite struct MetricsTests {
  @Test("ServiceKit a duration counts in the bucket whose bound it does not pass")
  func buckets() {
    var buckets = DurationBuckets()
    for duration: Duration in [.zero, .milliseconds(5), .microseconds(5001), .seconds(10), .microseconds(10_000_001)] {
      buckets.record(duration)
    }
    #expect(buckets.counts.count == 15)
    #expect(buckets.counts[0] == 2 && buckets.counts[1] == 1 && buckets.counts[13] == 1 && buckets.counts[14] == 1)
    #expect(buckets.nanoseconds == 20_010_002_000)
  }

  @Test("ServiceKit metrics are written as Prometheus reads them")
  func format() async {
    let metrics = Metrics()
    metrics.counter("seen_total", "Things seen.").add(3)
    metrics.gauge("share", "A share.") { 0.25 }
    metrics.gauge("nothing", "Not known.") { nil }
    metrics.histogram("wait_seconds", "A wait.", [("what", "a\"b\\c\nd")]).record(.milliseconds(7))
    let text = await metrics.text()
    #expect(text.contains("# HELP seen_total Things seen.\n# TYPE seen_total counter\nseen_total 3\n"))
    #expect(text.contains("# TYPE share gauge\nshare 0.25\n"))
    #expect(!text.contains("nothing"))
    #expect(text.contains("# TYPE wait_seconds histogram\n"))
    #expect(text.contains(#"wait_seconds_bucket{what="a\"b\\c\nd",le="0.005"} 0"# + "\n"))
    #expect(text.contains(#"wait_seconds_bucket{what="a\"b\\c\nd",le="0.01"} 1"# + "\n"))
    #expect(text.contains(#"wait_seconds_bucket{what="a\"b\\c\nd",le="+Inf"} 1"# + "\n"))
    #expect(text.contains(#"wait_seconds_sum{what="a\"b\\c\nd"} 0.007"# + "\n"))
    #expect(text.contains(#"wait_seconds_count{what="a\"b\\c\nd"} 1"# + "\n"))
  }

  @Test("ServiceKit calls are counted at both sides by method and code, and unknown methods as other")
  func calls() async throws {
    let metrics = Metrics()
    let server = CallMetrics(.server, metrics)
    let client = CallMetrics(.client, metrics)
    let answers = Mutex<[ServiceError]>([.notFound("thing"), .internal(cause: CancellationError())])
    let group = EventLoopGroup(count: 1)
    var rig = ProbeRig(group: group)
    let probe = ProbeService { _ in
      if let error = answers.withLock({ $0.popLast() }) { throw error }
    }
    _ = try rig.serve([probe]) { configuration in
      configuration.onCallEnd = { context, error, duration, _, _ in server.record(context.method, error, duration) }
      configuration.onStrayRequest = { server.recordStray($0) }
    }
    var configuration = ChannelConfiguration()
    configuration.onCallEnd = { client.record($0, $1, $2) }
    let channel = rig.channel(to: rig.lastPort, configuration: configuration)
    for _ in 0..<4 { _ = try? await go(channel) }
    let invented = MethodDescriptor(service: "test.Invented", name: "Name", kind: .unary)
    _ = try await refusal {
      let _: ProbeService.Response = try await channel.unary(
        invented, ProbeService.Request(), .init(timeout: .seconds(60)))
    }
    let text = await metrics.text()
    func count(_ side: String, _ labels: String) -> Bool {
      text.contains("rpc_\(side)_call_duration_seconds_count{rpc_system_name=\"grpc\",\(labels)\n")
    }
    let probeLabel = "rpc_method=\"test.Probe/Go\""
    #expect(count("server", probeLabel + ",rpc_status_code=\"OK\"} 2"))
    // What the caller did wrong is no failure of the server; to the client both are.
    #expect(count("server", probeLabel + ",rpc_status_code=\"NOT_FOUND\"} 1"))
    #expect(count("server", probeLabel + ",rpc_status_code=\"INTERNAL\",error_type=\"INTERNAL\"} 1"))
    #expect(count("client", probeLabel + ",rpc_status_code=\"NOT_FOUND\",error_type=\"NOT_FOUND\"} 1"))
    #expect(
      count("server", "rpc_method=\"other\",rpc_status_code=\"UNIMPLEMENTED\",error_type=\"UNIMPLEMENTED\"} 1"))
    #expect(!text.contains("rpc_server_call_duration_seconds_count{rpc_system_name=\"grpc\",rpc_method=\"test.Inv"))
    await rig.end()
    await group.shutdown()
  }

  /// One GET over a socket that blocks; status line, headers and body.
  private static func get(_ path: String, port: Int, method: String = "GET") async throws -> String {
    try await BlockingPool(name: "get", threads: 1, queueMax: 1).run {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(descriptor) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(port).bigEndian
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      let connected = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard connected == 0 else { throw ServiceError.unavailable("not connected") }
      let request = Array(
        "\(method) \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8)
      _ = send(descriptor, request, request.count, 0)
      var answer: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 65536)
      while true {
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count <= 0 { return String(decoding: answer, as: UTF8.self) }
        answer += chunk[..<count]
      }
    }
  }

  @Test("ServiceKit the admin port shows metrics of process and database, and health")
  func admin() async throws {
    try await TestRuntime.with(name: "admin", migrations: []) { runtime in
      let metrics = Metrics()
      ProcessMetrics.add(to: metrics, group: runtime.group)
      DatabaseMetrics.add(to: metrics, database: runtime.database)
      let database = runtime.database
      try await database.execute("INSERT INTO event_cursors (publisher, position) VALUES ('vault', 7)")
      let isReady = Atomic(true)
      let admin = try AdminServer(
        address: TestRuntime.loopback, loop: runtime.group.next(), metrics: metrics
      ) { isReady.load(ordering: .relaxed) }
      let text = try await Self.get("/metrics", port: admin.port)
      #expect(text.hasPrefix("HTTP/1.1 200"))
      #expect(text.contains("Content-Type: text/plain; version=0.0.4"))
      for name in [
        "process_resident_memory_bytes ", "process_open_fds ", "process_cpu_seconds_total ",
        "event_loop_delay_seconds_count ", "outbox_position 0\n", "outbox_unplaced_events 0\n",
        "event_cursor_position{publisher=\"vault\"} 7\n", "database_up 1\n",
      ] {
        #expect(text.contains("\n" + name), "\(name)")
      }
      #expect(text.contains("\nsend_queue_length 0\n"))
      try await database.execute(
        """
        INSERT INTO send_queue (send_id, sealed, refused)
        VALUES (\(Identifier()), '', NULL), (\(Identifier()), '', NULL), (\(Identifier()), '', 'NO')
        """)
      let queued = try await Self.get("/metrics", port: admin.port)
      #expect(queued.contains("\nsend_queue_length 2\n") && queued.contains("\nsend_queue_refused 1\n"))
      #expect(try await Self.get("/healthz", port: admin.port).hasPrefix("HTTP/1.1 200"))
      #expect(try await Self.get("/readyz", port: admin.port).hasPrefix("HTTP/1.1 200"))
      isReady.store(false, ordering: .relaxed)
      #expect(try await Self.get("/healthz", port: admin.port).hasPrefix("HTTP/1.1 200"))
      #expect(try await Self.get("/readyz", port: admin.port).hasPrefix("HTTP/1.1 503"))
      #expect(try await Self.get("/elsewhere", port: admin.port).hasPrefix("HTTP/1.1 404"))
      #expect(try await Self.get("/metrics", port: admin.port, method: "POST").hasPrefix("HTTP/1.1 405"))
      await admin.shutdown()
    }
  }

  @Test("ServiceKit the admin port is off by default, and loopback only unless set otherwise")
  func adminSettings() {
    func faults(_ settings: [String: String]) -> (SocketAddress?, [String]) {
      var configuration = Configuration(environment: ["ALLOW_PLAINTEXT": "true"].merging(settings) { $1 })
      let config = TransportConfig(&configuration)
      return (config.adminListen, configuration.faults)
    }
    #expect(faults([:]).0 == nil && faults([:]).1.isEmpty)
    #expect(faults(["ADMIN_LISTEN": "127.0.0.1:7111"]).0 != nil)
    #expect(faults(["ADMIN_LISTEN": "127.0.0.1:7111"]).1.isEmpty)
    #expect(faults(["ADMIN_LISTEN": "0.0.0.0:7111"]).1.count == 1)
    #expect(faults(["ADMIN_LISTEN": "0.0.0.0:7111", "ADMIN_ALLOW_ANY_ADDRESS": "true"]).1.isEmpty)
    #expect(faults(["ADMIN_LISTEN": "nonsense"]).1.count == 1)
  }
}
