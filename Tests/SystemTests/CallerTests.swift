import API
import EventLoop
import Primitives
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing

@testable import confirmation
@testable import delivery
@testable import entitlement
@testable import identity
@testable import notifications
@testable import recipients
@testable import vault

/// Every method of every service against every kind of caller, with the access tables that the services are built with
/// and the gate that stands in front of them.
@Suite struct CallerTests {
  /// The tables, by the service that serves them; with what every service serves.
  static let tables: [(service: String, access: [MethodDescriptor: Access])] = [
    ("identity", Identity.access), ("vault", VaultParts.access), ("recipients", RecipientsParts.access),
    ("confirmation", ConfirmationParts.access), ("delivery", DeliveryService.access),
    ("entitlement", EntitlementParts.access),
    ("notifications", SendService.access.merging(NoticeService.access) { first, _ in first }),
  ]

  /// What the protos declare.
  static let descriptors: [ServiceDescriptor] = [
    IdentityV1.IdentityServiceMethods.descriptor, IdentityV1.DirectoryServiceMethods.descriptor,
    VaultV1.VaultServiceMethods.descriptor, VaultV1.ReleaseServiceMethods.descriptor,
    RecipientsV1.RecipientsServiceMethods.descriptor, RecipientsV1.AudienceServiceMethods.descriptor,
    ConfirmationV1.ConfirmationServiceMethods.descriptor, ConfirmationV1.DesignationServiceMethods.descriptor,
    DeliveryV1.DeliveryServiceMethods.descriptor, EntitlementV1.EntitlementServiceMethods.descriptor,
    EntitlementV1.GrantServiceMethods.descriptor, NotificationsV1.SendServiceMethods.descriptor,
    NotificationsV1.NotificationsServiceMethods.descriptor,
  ]

  enum Caller: Sendable, CustomStringConvertible {
    case nobody, person, forger, ended, stranger
    case service(String)

    static let all: [Caller] =
      [.nobody, .person, .forger, .ended, .stranger]
      + (tables.map { $0.service } + ["gateway", "unheard-of"]).map { .service($0) }

    var description: String {
      switch self {
      case .nobody: "nobody"
      case .person: "a person"
      case .forger: "a person with a forged token"
      case .ended: "a person whose token has ended"
      case .stranger: "a certificate from elsewhere"
      case .service(let name): name
      }
    }
  }

  static let key = SigningKey.random()

  private static func token(_ key: SigningKey, at time: Instant) throws -> String {
    try AccessTokenIssuer(key: key, issuer: "us", audience: "afterthoughts").issue(
      account: Identifier(), session: Identifier(), emailVerified: true, now: time
    ).reveal()
  }

  private static func context(_ caller: Caller, _ method: MethodDescriptor) throws -> CallContext {
    var metadata = Metadata()
    var certificate: String?
    switch caller {
    case .nobody: break
    case .person: metadata.append("authorization", "Bearer \(try token(key, at: .now()))")
    case .forger: metadata.append("authorization", "Bearer \(try token(.random(), at: .now()))")
    case .ended:
      metadata.append("authorization", "Bearer \(try token(key, at: Instant.now().advanced(by: .seconds(-3600))))")
    case .stranger: certificate = "spiffe://elsewhere/vault"
    case .service(let name): certificate = "spiffe://afterthoughts/\(name)"
    }
    return CallContext(
      method: method, metadata: metadata, peerAddress: TestRuntime.loopback, peerIdentity: certificate)
  }

  /// nil lets the caller in.
  private static func refusal(_ caller: Caller, _ access: Access) -> ServiceError.Code? {
    switch (access, caller) {
    case (.anyone, _), (.owner, .person): nil
    case (.owner, _): .unauthenticated
    case (.services(let names), .service(let name)): names.contains(name) ? nil : .permissionDenied
    case (.anyService, .service): nil
    case (.services, _), (.anyService, _): .permissionDenied
    }
  }

  private static func gate() throws -> Gate {
    var access: [MethodDescriptor: Access] = [:]
    for table in tables { access.merge(table.access) { first, _ in first } }
    return try Gate(descriptors: descriptors, access: access, tokens: AccessTokens { ([key.verifyingKey], "us") })
  }

  @Test("P3 every method lets in whom its row names, and refuses everyone else", arguments: Caller.all)
  func everyMethod(_ caller: Caller) async throws {
    let gate = try Self.gate()
    for (service, access) in Self.tables {
      for (method, row) in access {
        var context = try Self.context(caller, method)
        var code: ServiceError.Code?
        do {
          try await gate.authenticate(&context)
        } catch let error as ServiceError {
          code = error.code
        }
        #expect(code == Self.refusal(caller, row), "\(caller) calling \(method) of \(service)")
        if code != nil { #expect(context.caller == .anonymous) }
      }
    }
  }

  @Test("P3 every method of the protos is in exactly one table, and no table has another")
  func completeness() throws {
    let rows = Self.tables.flatMap { $0.access.keys }
    let declared = Self.descriptors.flatMap { $0.methods }
    #expect(Set(rows) == Set(declared) && rows.count == declared.count)
    #expect(Self.descriptors.count == Set(declared.map { $0.service }).count)
  }

  @Test("P3 a row names only services that exist")
  func names() {
    let known = Set(Self.tables.map { $0.service } + ["gateway"])
    for (service, access) in Self.tables {
      for (method, row) in access {
        if case .services(let names) = row {
          #expect(names.isSubset(of: known) && !names.isEmpty, "\(method) of \(service)")
        }
      }
    }
  }
}
