internal import API
internal import Primitives
internal import RPC
package import ServiceKit

/// An author's messages and secure folder. Every call works on what the caller owns and on nothing else.
package struct VaultService: VaultV1.VaultService {
  let runtime: ServiceRuntime
  let neighbours: VaultNeighbours

  package init(_ runtime: ServiceRuntime) throws {
    self.runtime = runtime
    neighbours = try VaultNeighbours(runtime)
  }
}

/// How a save names what it saves over.
enum SaveTarget: Sendable {
  case new
  case existing(Identifier, revision: Int64)

  /// `field` is the id's name in the proto; an empty id stands for a new object.
  init(_ id: String, _ revision: Int64, field: String) throws(ServiceError) {
    if let id = try Fields.optionalIdentifier(id, field) {
      self = .existing(id, revision: revision)
    } else {
      guard revision == 0 else { throw .invalid("revision", "must be 0 when \(field) is empty") }
      self = .new
    }
  }
}

extension ServiceError {
  /// Someone else has saved since the caller last read.
  static func revisionMismatch() -> ServiceError {
    ServiceError(
      .aborted, "It was changed in the meantime; read it again and repeat the change.", reason: "REVISION_MISMATCH")
  }
}
