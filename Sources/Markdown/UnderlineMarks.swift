private import CCmark

/// The `++` marks that begin and end underlined text. Both ends of a pair are children of one node, so that the
/// elements nest.
struct UnderlineMarks {
  struct Mark {
    /// In bytes of the text node.
    let offset: Int
    let isOpening: Bool
  }

  private struct Candidate {
    let node: OpaquePointer
    let offset: Int
    let canOpen: Bool
    let canClose: Bool
  }

  private var marks: [OpaquePointer: [Mark]] = [:]

  /// The marks of a text node, in order; nil when it has none.
  mutating func take(_ node: OpaquePointer) -> [Mark]? {
    marks.isEmpty ? nil : marks.removeValue(forKey: node)
  }

  /// Pairs the marks among the children of `node`.
  mutating func find(in node: OpaquePointer) {
    var opening: Candidate?
    var child = cmark_node_first_child(node)
    while let current = child {
      if cmark_node_get_type(current) == CMARK_NODE_TEXT {
        for candidate in UnderlineMarks.candidates(in: current) {
          if let start = opening, candidate.canClose {
            marks[start.node, default: []].append(Mark(offset: start.offset, isOpening: true))
            marks[current, default: []].append(Mark(offset: candidate.offset, isOpening: false))
            opening = nil
          } else if opening == nil, candidate.canOpen {
            opening = candidate
          }
        }
      }
      child = cmark_node_next(current)
    }
  }

  /// Runs of exactly two plus signs. One can open unless white space follows it, and close unless white space stands
  /// before it.
  private static func candidates(in node: OpaquePointer) -> [Candidate] {
    guard let literal = cmark_node_get_literal(node) else { return [] }
    let bytes = Array(String(cString: literal).utf8)
    var found: [Candidate] = []
    var position = 0
    while position < bytes.count {
      guard bytes[position] == UInt8(ascii: "+") else {
        position += 1
        continue
      }
      let start = position
      while position < bytes.count, bytes[position] == UInt8(ascii: "+") { position += 1 }
      guard position - start == 2 else { continue }
      let before = start > 0 ? isInk(bytes[start - 1]) : isInk(cmark_node_previous(node))
      let after = position < bytes.count ? isInk(bytes[position]) : isInk(cmark_node_next(node))
      found.append(Candidate(node: node, offset: start, canOpen: after, canClose: before))
    }
    return found
  }

  private static func isInk(_ byte: UInt8) -> Bool { byte > 0x20 }

  private static func isInk(_ neighbour: OpaquePointer?) -> Bool {
    guard let neighbour else { return false }
    let type = cmark_node_get_type(neighbour)
    return type != CMARK_NODE_SOFTBREAK && type != CMARK_NODE_LINEBREAK
  }
}
