package import EventLoop
internal import Events
internal import Glibc
package import Postgres
internal import Primitives

/// What a process shows of itself, whatever it serves.
package enum ProcessMetrics {
  /// Memory, descriptors, processor time, and how late each loop's timers are.
  package static func add(to metrics: Metrics, group: EventLoopGroup) {
    metrics.gauge("process_resident_memory_bytes", "Resident memory.") { residentBytes() }
    metrics.gauge("process_open_fds", "Open file descriptors.") { openDescriptors() }
    metrics.add { text in
      text.family("process_cpu_seconds_total", .counter, "Processor time, user and system.")
      text.sample("process_cpu_seconds_total", [], processorSeconds())
    }
    let delay = metrics.histogram(
      "event_loop_delay_seconds", "How late timers fire: the length of the loop's turns as its calls feel it.")
    for loop in group.loops { loop.execute { watch(loop, delay) } }
  }

  private static let period: Duration = .milliseconds(250)

  /// On the loop. A timer that asks how late it is costs nothing between its turns.
  private static func watch(_ loop: EventLoop, _ delay: Histogram) {
    let due = Monotonic.now().advanced(by: period)
    loop.schedule(after: period) {
      delay.record(due.duration(to: .now()))
      watch(loop, delay)
    }
  }

  private static func residentBytes() -> Double? {
    guard let bytes = Configuration.read(path: "/proc/self/statm") else { return nil }
    let fields = bytes.split(separator: UInt8(ascii: " "))
    guard fields.count > 1, let pages = Double(String(decoding: fields[1], as: UTF8.self)) else { return nil }
    return pages * Double(sysconf(Int32(_SC_PAGESIZE)))
  }

  private static func openDescriptors() -> Double? {
    guard let directory = opendir("/proc/self/fd") else { return nil }
    defer { closedir(directory) }
    // Not counted: ".", ".." and the descriptor of the directory itself.
    var count = -3
    while readdir(directory) != nil { count += 1 }
    return Double(count)
  }

  private static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// What a service's schema tells of work that waits: its log, its reading of others' logs, its send queue.
package enum DatabaseMetrics {
  package static func add(to metrics: Metrics, database: Database) {
    metrics.add { text in
      do {
        let rows = try await read(database)
        write(rows, &text)
      } catch {
        text.family("database_up", .gauge, "Whether the database answers.")
        text.sample("database_up", [], 0)
      }
    }
  }

  private struct Rows {
    var log: (position: Int64, waiting: Int64, waitingSeconds: Double)?
    var cursors: [(publisher: String, position: Int64, stillSeconds: Double)] = []
    var queue: (length: Int64, refused: Int64, waitingSeconds: Double)?
  }

  private static func read(_ database: Database) async throws -> Rows {
    var rows = Rows()
    let log = try await database.query(
      """
      SELECT (SELECT position FROM outbox_head), count(*),
        coalesce(extract(epoch FROM now() - min(create_time)), 0)::float8
      FROM outbox WHERE position IS NULL
      """)
    guard let first = log.first else { return rows }
    let (position, waiting, seconds) = try first.decode((Int64, Int64, Double).self)
    rows.log = (position, waiting, seconds)
    rows.cursors = try await database.query(
      """
      SELECT publisher, position, extract(epoch FROM now() - move_time)::float8 FROM event_cursors ORDER BY publisher
      """
    ).map { row in
      let (publisher, position, seconds) = try row.decode((String, Int64, Double).self)
      return (publisher, position, seconds)
    }
    let queue = try await database.query(
      """
      SELECT count(*) FILTER (WHERE refused IS NULL), count(*) FILTER (WHERE refused IS NOT NULL),
        greatest(coalesce(extract(epoch FROM now() - min(next_attempt_time) FILTER (WHERE refused IS NULL)), 0), 0)::float8
      FROM send_queue
      """)
    if let row = queue.first {
      let (length, refused, seconds) = try row.decode((Int64, Int64, Double).self)
      rows.queue = (length, refused, seconds)
    }
    return rows
  }

  private static func write(_ rows: Rows, _ text: inout MetricsText) {
    func gauge(_ name: String, _ help: String, _ value: Double) {
      text.family(name, .gauge, help)
      text.sample(name, [], value)
    }
    gauge("database_up", "Whether the database answers.", 1)
    if let log = rows.log {
      gauge("outbox_position", "The last position given to an event.", Double(log.position))
      gauge("outbox_unplaced_events", "Events that no reader has asked for yet.", Double(log.waiting))
      gauge("outbox_unplaced_seconds", "The age of the oldest of them.", log.waitingSeconds)
    }
    if !rows.cursors.isEmpty {
      text.family("event_cursor_position", .gauge, "How far a publisher's log has been applied here.")
      for cursor in rows.cursors {
        text.sample("event_cursor_position", [("publisher", cursor.publisher)], Double(cursor.position))
      }
      text.family("event_cursor_still_seconds", .gauge, "How long ago that was last moved.")
      for cursor in rows.cursors {
        text.sample("event_cursor_still_seconds", [("publisher", cursor.publisher)], cursor.stillSeconds)
      }
    }
    if let queue = rows.queue {
      gauge("send_queue_length", "Notifications that wait to be handed over.", Double(queue.length))
      gauge("send_queue_refused", "Notifications that were refused for good.", Double(queue.refused))
      gauge("send_queue_overdue_seconds", "How long the most overdue of them has been due.", queue.waitingSeconds)
    }
  }
}
