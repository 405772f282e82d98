internal import Primitives
internal import Synchronization

/// The numbers that a process shows, in the text format of Prometheus. Names and labels are fixed when something is
/// registered, at start; counting allocates nothing. Labels hold names of methods, services and codes: never a person's
/// id.
package final class Metrics: Sendable {
  /// Adds lines to a scrape; asked each time.
  package typealias Source = @Sendable (inout MetricsText) async -> Void

  private let sources = Mutex<[Source]>([])

  package init() {}

  /// Adds what a scrape shows. Sources are asked in the order in which they were added.
  package func add(_ source: @escaping Source) {
    sources.withLock { $0.append(source) }
  }

  /// A number that only grows.
  package func counter(_ name: String, _ help: String) -> Counter {
    let counter = Counter()
    add { text in
      text.family(name, .counter, help)
      text.sample(name, [], Double(counter.value))
    }
    return counter
  }

  /// A number that is looked up when asked for; nil leaves it out.
  package func gauge(_ name: String, _ help: String, _ value: @escaping @Sendable () -> Double?) {
    add { text in
      guard let value = value() else { return }
      text.family(name, .gauge, help)
      text.sample(name, [], value)
    }
  }

  /// Durations in the buckets of `DurationBuckets`.
  package func histogram(_ name: String, _ help: String, _ labels: [(String, String)] = []) -> Histogram {
    let histogram = Histogram()
    add { text in
      text.family(name, .histogram, help)
      text.histogram(name, labels, histogram.buckets)
    }
    return histogram
  }

  /// Everything, for one scrape.
  package func text() async -> String {
    var text = MetricsText()
    for source in sources.withLock({ $0 }) { await source(&text) }
    return text.output
  }
}

/// A number that only grows.
package final class Counter: Sendable {
  private let count = Atomic<Int>(0)

  package var value: Int { count.load(ordering: .relaxed) }

  package func add(_ more: Int = 1) { count.add(more, ordering: .relaxed) }
}

/// Durations, counted in buckets.
package final class Histogram: Sendable {
  private let state = Mutex(DurationBuckets())

  package var buckets: DurationBuckets { state.withLock { $0 } }

  package func record(_ duration: Duration) { state.withLock { $0.record(duration) } }
}

/// How many durations fell below each bound: those of OpenTelemetry's `rpc.server.call.duration`.
package struct DurationBuckets: Sendable {
  /// In seconds.
  package static let bounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
  private static let boundsNanoseconds = bounds.map { Int64($0 * 1e9) }

  /// One more than there are bounds; each holds only its own.
  package private(set) var counts = [Int](repeating: 0, count: bounds.count + 1)
  package private(set) var nanoseconds: Int64 = 0

  package init() {}

  package mutating func record(_ duration: Duration) {
    let value = duration.nanoseconds
    var index = 0
    while index < Self.boundsNanoseconds.count, value > Self.boundsNanoseconds[index] { index += 1 }
    counts[index] += 1
    nanoseconds &+= value
  }
}

/// A scrape under way, in the text format of Prometheus.
package struct MetricsText {
  package enum Kind: String { case counter, gauge, histogram }

  package private(set) var output = ""

  package init() {}

  /// Begins the samples of one name; called once for each.
  package mutating func family(_ name: String, _ kind: Kind, _ help: String) {
    output += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
  }

  package mutating func sample(_ name: String, _ labels: [(String, String)], _ value: Double) {
    output += name
    append(labels)
    let whole = value.rounded() == value && abs(value) < 1e15
    output += whole ? " \(Int64(value))\n" : " \(value)\n"
  }

  package mutating func histogram(_ name: String, _ labels: [(String, String)], _ buckets: DurationBuckets) {
    var sum = 0
    for (index, count) in buckets.counts.enumerated() {
      sum += count
      let bound = index < DurationBuckets.bounds.count ? "\(DurationBuckets.bounds[index])" : "+Inf"
      sample("\(name)_bucket", labels + [("le", bound)], Double(sum))
    }
    sample("\(name)_sum", labels, Double(buckets.nanoseconds) / 1e9)
    sample("\(name)_count", labels, Double(sum))
  }

  private mutating func append(_ labels: [(String, String)]) {
    if labels.isEmpty { return }
    output += "{"
    for (index, (name, value)) in labels.enumerated() {
      if index > 0 { output += "," }
      output += "\(name)=\""
      for character in value.unicodeScalars {
        switch character {
        case "\\": output += "\\\\"
        case "\"": output += "\\\""
        case "\n": output += "\\n"
        default: output.unicodeScalars.append(character)
        }
      }
      output += "\""
    }
    output += "}"
  }
}
