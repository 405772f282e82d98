internal import Primitives

/// The metadata of a call: ordered pairs, lower-case names, duplicates kept. Names that end in `-bin` carry bytes.
package struct Metadata: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  package enum Content: Sendable, Equatable {
    case text(String)
    case binary([UInt8])
  }

  package struct Pair: Sendable, Equatable {
    package let name: String
    package let value: Content
  }

  package private(set) var pairs: [Pair] = []

  package init() {}

  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { append(name, value) }
  }

  package var isEmpty: Bool { pairs.isEmpty }

  /// Adds a text value; the name is lower-cased. A name that is reserved (`grpc-…`, `:…`, those of the transport), or
  /// holds other than `[0-9a-z_.-]`, or a value outside printable ASCII is left out: a peer would refuse the call.
  package mutating func append(_ name: String, _ value: String) {
    let name = name.lowercased()
    guard Self.isCustom(name), !name.hasSuffix("-bin"), value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else { return }
    pairs.append(Pair(name: name, value: .text(value)))
  }

  /// Adds `traceparent`, and `tracestate` where there is one.
  package mutating func append(_ trace: TraceContext) {
    append("traceparent", trace.traceparent)
    if let state = trace.state { append("tracestate", state) }
  }

  /// Adds bytes; the name must end in `-bin`, else nothing is added.
  package mutating func append(_ name: String, bytes: [UInt8]) {
    let name = name.lowercased()
    guard Self.isCustom(name), name.hasSuffix("-bin") else { return }
    pairs.append(Pair(name: name, value: .binary(bytes)))
  }

  /// The first text value of that name.
  package subscript(_ name: String) -> String? {
    for pair in pairs where pair.name == name {
      if case .text(let text) = pair.value { return text }
    }
    return nil
  }

  /// Every text value of that name, in order.
  package func values(_ name: String) -> [String] {
    pairs.compactMap { pair in
      guard pair.name == name, case .text(let text) = pair.value else { return nil }
      return text
    }
  }

  /// The first binary value of that name, which ends in `-bin`.
  package func bytes(_ name: String) -> [UInt8]? {
    for pair in pairs where pair.name == name {
      if case .binary(let bytes) = pair.value { return bytes }
    }
    return nil
  }

  /// Adds a pair as it was received: a `-bin` value may hold several, split by commas; one that does not decode is left
  /// out.
  mutating func appendReceived(_ name: String, _ value: String) {
    guard name.hasSuffix("-bin") else {
      pairs.append(Pair(name: name, value: .text(value)))
      return
    }
    for part in value.split(separator: ",", omittingEmptySubsequences: false) {
      let text = part.drop(while: { $0 == " " })
      guard let bytes = Base64.decode(text) else { continue }
      pairs.append(Pair(name: name, value: .binary(bytes)))
    }
  }

  private static let transportNames: Set<String> = [
    "content-type", "te", "user-agent", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
    "host", "content-length",
  ]

  private static func isCustom(_ name: String) -> Bool {
    guard !name.isEmpty, !name.hasPrefix("grpc-"), !transportNames.contains(name) else { return false }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
      case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."): true
      default: false
      }
    }
  }
}
