internal import API
internal import Postgres
internal import Primitives
internal import Sealing

/// How a list is narrowed and sorted.
struct RecipientFilter: Sendable {
  private let search: String
  private let relationship: Relationship?
  private let acceptance: Acceptance?
  let order: Order

  /// What comes before the name. Names and what is searched are compared as people do, whatever the database's locale.
  enum Order: Sendable {
    case name, relationship, acceptance

    /// Two columns: what comes first, and as much of the name as a page token has room for.
    var place: Query {
      let first: Query =
        switch self {
        case .name: "''::text"
        case .relationship: "relationship"
        case .acceptance: "acceptance"
        }
      return #"\#(first), left(name, 100) COLLATE "und-x-icu""#
    }
  }

  /// INVALID_ARGUMENT naming every field that means nothing.
  init(_ request: RecipientsV1.ListRecipientsRequest) throws(ServiceError) {
    var violations: [ServiceError.FieldViolation] = []
    var search = ""
    do {
      search = try Normalisation.line(request.search, field: "search", lengths: 0...100)
    } catch {
      violations += error.violations
    }
    relationship = Relationship(request.relationship)
    if relationship == nil, request.relationship != .unspecified {
      violations.append(.init(field: "relationship", description: "is not a relationship"))
    }
    acceptance = Acceptance(request.acceptance)
    if acceptance == nil, request.acceptance != .unspecified {
      violations.append(.init(field: "acceptance", description: "is not an answer"))
    }
    var order = Order.name
    switch request.order {
    case .unspecified, .name: break
    case .relationship: order = .relationship
    case .acceptance: order = .acceptance
    default: violations.append(.init(field: "order", description: "is not an order"))
    }
    guard violations.isEmpty else { throw .invalid(violations) }
    self.search = search
    self.order = order
  }

  /// Follows a WHERE.
  var conditions: Query {
    let found: Query =
      search.isEmpty
      ? ""
      : #"""
       AND (position(lower(\#(search) COLLATE "und-x-icu") IN lower(name COLLATE "und-x-icu")) > 0
        OR position(lower(\#(search) COLLATE "und-x-icu") IN lower(email COLLATE "und-x-icu")) > 0)
      """#
    let related: Query = relationship.map { " AND relationship = \($0)" } ?? ""
    let accepted: Query = acceptance.map { " AND acceptance = \($0)" } ?? ""
    return "\(found)\(related)\(accepted)"
  }
}

/// A place in a sorted list of recipients.
struct RecipientCursor: Sendable, Equatable {
  /// What comes before the name.
  let key: String
  let name: String
  let id: Identifier

  init(_ recipient: Recipient, _ order: RecipientFilter.Order) {
    switch order {
    case .name: key = ""
    case .relationship: key = recipient.fields.relationship.rawValue
    case .acceptance: key = recipient.acceptance.rawValue
    }
    // As SQL's `left` counts.
    name = String(recipient.fields.name.unicodeScalars.prefix(100))
    id = recipient.id
  }

  init?(bytes: [UInt8]) {
    guard bytes.count >= 17, let id = Identifier(bytes: bytes[..<16]), bytes.count >= 17 + Int(bytes[16]) else {
      return nil
    }
    let end = 17 + Int(bytes[16])
    key = String(decoding: bytes[17..<end], as: UTF8.self)
    name = String(decoding: bytes[end...], as: UTF8.self)
    self.id = id
  }

  /// The id, the length of the key, the key, the name: less than 500 bytes.
  var bytes: [UInt8] { id.bytes + [UInt8(truncatingIfNeeded: key.utf8.count)] + Array(key.utf8) + Array(name.utf8) }
}
