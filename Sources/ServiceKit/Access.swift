package import Primitives
package import RPC

/// Who may call a method. The handler decides what is theirs; the gate decides whether they may ask.
package enum Access: Sendable, Equatable {
  /// Anyone; where a link or token in the request stands for the caller, the handler checks it.
  case anyone
  /// A person with a valid access token; the handler serves only what that account owns.
  case owner
  /// One of these services, by certificate.
  case services(Set<String>)
  /// Any of our services, by certificate.
  case anyService
}

extension CallContext {
  /// The signed-in person. UNAUTHENTICATED for anyone else.
  package func account() throws(ServiceError) -> AccountCaller {
    guard case .account(let account) = caller else { throw .unauthenticated() }
    return account
  }

  /// The signed-in person with a proved address. FAILED_PRECONDITION (EMAIL_NOT_VERIFIED) without.
  package func verifiedAccount() throws(ServiceError) -> AccountCaller {
    let account = try account()
    guard account.emailVerified else {
      throw .precondition(
        "EMAIL_NOT_VERIFIED", "Follow the link in the mail that was sent to you, then refresh the session.")
    }
    return account
  }
}

/// Decides on every call before its handler runs, from one table. A method that is missing from the table cannot be
/// served.
package struct Gate: Sendable {
  static let identityPrefix = "spiffe://afterthoughts/"

  private let table: [String: Access]
  private let tokens: AccessTokens

  /// Throws when a method has no row, or a row no method.
  package init(services: [any Service], access: [MethodDescriptor: Access], tokens: AccessTokens) throws {
    try self.init(descriptors: services.map { type(of: $0).descriptor }, access: access, tokens: tokens)
  }

  /// The same by the services' declarations.
  package init(descriptors: [ServiceDescriptor], access: [MethodDescriptor: Access], tokens: AccessTokens) throws {
    var missing = Set(access.keys)
    var table: [String: Access] = [:]
    for descriptor in descriptors {
      for method in descriptor.methods {
        guard let row = access[method] else { throw GateFault(text: "\(method.path) has no row in the access table") }
        missing.remove(method)
        table[method.path] = row
      }
    }
    if let extra = missing.first { throw GateFault(text: "\(extra.path) is in the access table but not served") }
    self.table = table
    self.tokens = tokens
  }

  /// Decides without waiting where it can; false when the token needs a key that must be fetched first.
  package func admit(_ context: inout CallContext) throws -> Bool {
    switch table[context.method.path] {
    case .anyone:
      return true
    case .owner:
      guard let claims = try tokens.cached(try bearerToken(context)) else { return false }
      context.caller = .account(claims.caller)
      return true
    case .services(let names):
      context.caller = .service(try service(context, oneOf: names))
      return true
    case .anyService:
      context.caller = .service(try service(context, oneOf: nil))
      return true
    case nil:
      throw ServiceError.denied()
    }
  }

  /// As `admit`, fetching the key first where it must.
  package func authenticate(_ context: inout CallContext) async throws {
    if try admit(&context) { return }
    let claims = try await tokens.verify(try bearerToken(context))
    context.caller = .account(claims.caller)
  }

  private func bearerToken(_ context: CallContext) throws(ServiceError) -> String {
    guard let header = context.metadataValue("authorization") else { throw .unauthenticated() }
    let prefix = "bearer "
    guard header.utf8.count > prefix.utf8.count, header.prefix(prefix.count).lowercased() == prefix else {
      throw .unauthenticated()
    }
    return String(header.dropFirst(prefix.count))
  }

  private func service(_ context: CallContext, oneOf names: Set<String>?) throws(ServiceError) -> String {
    guard let identity = context.peerIdentity, identity.hasPrefix(Gate.identityPrefix) else { throw .denied() }
    let name = String(identity.dropFirst(Gate.identityPrefix.count))
    guard !name.isEmpty, !name.contains("/") else { throw .denied() }
    if let names, !names.contains(name) { throw .denied() }
    return name
  }
}

/// A fault of the program, found at start.
package struct GateFault: Error, CustomStringConvertible {
  let text: String
  package var description: String { text }
}
