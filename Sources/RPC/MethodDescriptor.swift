/// One method of a service, as its proto declares it. A reference inside, so that a copy costs one retain.
package struct MethodDescriptor: Sendable, Hashable, CustomStringConvertible {
  package enum Kind: Sendable, Hashable {
    case unary, clientStreaming, serverStreaming, bidirectional
  }

  private final class Storage: Sendable {
    let service: String
    let name: String
    let kind: Kind
    let isIdempotent: Bool
    let path: String

    init(service: String, name: String, kind: Kind, isIdempotent: Bool) {
      self.service = service
      self.name = name
      self.kind = kind
      self.isIdempotent = isIdempotent
      path = "/\(service)/\(name)"
    }
  }

  private let storage: Storage

  package init(service: String, name: String, kind: Kind, isIdempotent: Bool = false) {
    storage = Storage(service: service, name: name, kind: kind, isIdempotent: isIdempotent)
  }

  /// The full name of the service, such as `afterthoughts.vault.v1.VaultService`.
  package var service: String { storage.service }
  /// The method's own name, such as `SaveToVault`.
  package var name: String { storage.name }
  package var kind: Kind { storage.kind }
  /// Whether the proto marks the method as free of side effects or idempotent: only then may a call be repeated.
  package var isIdempotent: Bool { storage.isIdempotent }
  /// What `:path` carries: `/service/name`.
  package var path: String { storage.path }
  /// Stands for this declaration of the method while the process lives: cheaper to look up than its path.
  package var identity: ObjectIdentifier { ObjectIdentifier(storage) }
  package var description: String { storage.path }

  package static func == (left: MethodDescriptor, right: MethodDescriptor) -> Bool {
    left.storage === right.storage || left.storage.path == right.storage.path
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(storage.path) }
}

/// A service, as its proto declares it.
package struct ServiceDescriptor: Sendable {
  /// The full name, such as `afterthoughts.vault.v1.VaultService`.
  package let name: String
  /// In the proto's order.
  package let methods: [MethodDescriptor]
  /// For reflection: base64 of the serialised `google.protobuf.FileDescriptorSet` of the file that declares it and of
  /// all that this imports, without comments; empty when unknown. Static text costs nothing until somebody asks.
  package let files: StaticString

  package init(name: String, methods: [MethodDescriptor], files: StaticString = "") {
    self.name = name
    self.methods = methods
    self.files = files
  }
}

/// What a server serves. The generated protocol of each proto service refines this one and supplies both members.
package protocol Service: Sendable {
  static var descriptor: ServiceDescriptor { get }
  /// One handler for each method, in the proto's order; asked for once, when the server is built.
  var handlers: [MethodHandler] { get }
}
