package import Primitives

/// Reads request fields into domain types; a fault names the field as the proto does.
package enum Fields {
  /// A UUID.
  package static func identifier(_ text: String, _ field: String) throws(ServiceError) -> Identifier {
    guard let identifier = Identifier(text) else { throw .invalid(field, "must be a UUID") }
    return identifier
  }

  /// A UUID, or nil for an empty field.
  package static func optionalIdentifier(_ text: String, _ field: String) throws(ServiceError) -> Identifier? {
    text.isEmpty ? nil : try identifier(text, field)
  }

  /// UUIDs without repeats, at most `max`.
  package static func identifiers(_ texts: [String], _ field: String, max: Int) throws(ServiceError) -> [Identifier] {
    guard texts.count <= max else { throw .invalid(field, "takes at most \(max) entries") }
    var seen: Set<Identifier> = []
    var result: [Identifier] = []
    for (index, text) in texts.enumerated() {
      let identifier = try identifier(text, "\(field)[\(index)]")
      if seen.insert(identifier).inserted { result.append(identifier) }
    }
    return result
  }

  /// How many rows a list returns: 0 means the default, more than the limit means the limit.
  package static func pageSize(_ asked: Int32, default value: Int, max: Int) throws(ServiceError) -> Int {
    guard asked >= 0 else { throw .invalid("page_size", "must not be negative") }
    return asked == 0 ? value : min(Int(asked), max)
  }
}
