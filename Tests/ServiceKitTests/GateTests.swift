import API
import EventLoop
import Primitives
import RPC
import Sealing
import ServiceKit
import Synchronization
import TestKit
import Testing

@Suite struct GateTests {
  static let anyone = MethodDescriptor(service: "test.Gate", name: "Anyone", kind: .unary)
  static let owner = MethodDescriptor(service: "test.Gate", name: "Owner", kind: .unary)
  static let some = MethodDescriptor(service: "test.Gate", name: "Some", kind: .unary)
  static let services = MethodDescriptor(service: "test.Gate", name: "Services", kind: .unary)

  struct Gated: Service {
    static let descriptor = ServiceDescriptor(name: "test.Gate", methods: [anyone, owner, some, services])
    let handlers: [MethodHandler] = []
  }

  static let table: [MethodDescriptor: Access] = [
    anyone: .anyone, owner: .owner, some: .services(["vault"]), services: .anyService,
  ]

  static let key = SigningKey.random()
  static let account = Identifier()

  static func token(
    _ key: SigningKey = key, issuer: String = "us", audience: String = "afterthoughts", age: Duration = .zero,
    emailVerified: Bool = true
  ) throws -> String {
    try AccessTokenIssuer(key: key, issuer: issuer, audience: audience).issue(
      account: account, session: Identifier(), emailVerified: emailVerified,
      now: Instant.now().advanced(by: .zero - age)
    ).reveal()
  }

  static func tokens() -> AccessTokens { AccessTokens { ([key.verifyingKey], "us") } }

  static func context(
    _ method: MethodDescriptor, authorization: String? = nil, certificate: String? = nil
  ) -> CallContext {
    var metadata = Metadata()
    if let authorization { metadata.append("authorization", authorization) }
    return CallContext(
      method: method, metadata: metadata, peerAddress: TestRuntime.loopback, peerIdentity: certificate)
  }

  /// Who the gate takes the caller for, or the code with which it refuses.
  static func outcome(
    _ method: MethodDescriptor, authorization: String? = nil, certificate: String? = nil
  ) async throws -> String {
    let gate = try Gate(services: [Gated()], access: table, tokens: tokens())
    var context = context(method, authorization: authorization, certificate: certificate)
    do {
      try await gate.authenticate(&context)
    } catch let error as ServiceError {
      return error.code.name
    }
    switch context.caller {
    case .anonymous: return "anonymous"
    case .account(let caller): return caller.accountID == account ? "account" : "another account"
    case .service(let name): return name
    }
  }

  /// What each kind of caller shows.
  enum Kind: String, CaseIterable, Sendable {
    case nobody, person, vault, delivery, stranger, personThroughVault

    func credentials() throws -> (authorization: String?, certificate: String?) {
      switch self {
      case .nobody: (nil, nil)
      case .person: ("Bearer " + (try token()), nil)
      case .vault: (nil, "spiffe://afterthoughts/vault")
      case .delivery: (nil, "spiffe://afterthoughts/delivery")
      case .stranger: (nil, "spiffe://elsewhere/vault")
      case .personThroughVault: ("bearer " + (try token()), "spiffe://afterthoughts/vault")
      }
    }
  }

  static let expected: [Kind: [String]] = [
    // anyone, owner, services(vault), any service
    .nobody: ["anonymous", "UNAUTHENTICATED", "PERMISSION_DENIED", "PERMISSION_DENIED"],
    .person: ["anonymous", "account", "PERMISSION_DENIED", "PERMISSION_DENIED"],
    .vault: ["anonymous", "UNAUTHENTICATED", "vault", "vault"],
    .delivery: ["anonymous", "UNAUTHENTICATED", "PERMISSION_DENIED", "delivery"],
    .stranger: ["anonymous", "UNAUTHENTICATED", "PERMISSION_DENIED", "PERMISSION_DENIED"],
    .personThroughVault: ["anonymous", "account", "vault", "vault"],
  ]

  @Test("P3 every kind of access against every kind of caller", arguments: Kind.allCases)
  func matrix(_ kind: Kind) async throws {
    let (authorization, certificate) = try kind.credentials()
    var outcomes: [String] = []
    for method in [Self.anyone, Self.owner, Self.some, Self.services] {
      outcomes.append(try await Self.outcome(method, authorization: authorization, certificate: certificate))
    }
    #expect(outcomes == Self.expected[kind])
  }

  @Test("P3 a forged, foreign, ended or misshapen token is nobody's")
  func badTokens() async throws {
    let good = try Self.token()
    let parts = good.split(separator: ".").map(String.init)
    let bad = [
      try Self.token(.random()), try Self.token(issuer: "them"), try Self.token(audience: "elsewhere"),
      try Self.token(age: .seconds(700)), String(good.dropLast(4)), good + "A", "x", "",
      parts[0] + "." + parts[1] + ".", parts[1] + "." + parts[0] + "." + parts[2],
    ]
    for token in bad {
      #expect(try await Self.outcome(Self.owner, authorization: "Bearer \(token)") == "UNAUTHENTICATED")
    }
    for header in [good, "Basic \(good)", "Bearer", "Bearer ", "Bearer\(good)"] {
      #expect(try await Self.outcome(Self.owner, authorization: header) == "UNAUTHENTICATED")
    }
    #expect(try await Self.outcome(Self.owner, authorization: "Bearer \(good)") == "account")
  }

  @Test("P3 a certificate that only looks like ours opens nothing")
  func certificates() async throws {
    for name in [
      "spiffe://afterthoughts", "spiffe://afterthoughts/vault/x", "https://afterthoughts/vault", "vault",
      "xspiffe://afterthoughts/vault", "spiffe://afterthoughts/", "",
    ] {
      #expect(try await Self.outcome(Self.some, certificate: name) == "PERMISSION_DENIED")
      #expect(try await Self.outcome(Self.services, certificate: name) == "PERMISSION_DENIED")
    }
  }

  @Test("P3 a method without a row keeps the service from starting, and so does a row without a method")
  func table() throws {
    var missing = Self.table
    missing[Self.owner] = nil
    #expect(throws: GateFault.self) { try Gate(services: [Gated()], access: missing, tokens: Self.tokens()) }
    var extra = Self.table
    extra[MethodDescriptor(service: "test.Gate", name: "Gone", kind: .unary)] = .anyone
    #expect(throws: GateFault.self) { try Gate(services: [Gated()], access: extra, tokens: Self.tokens()) }
  }

  @Test("P3 a method that is not in the table is refused, whoever asks")
  func unknownMethod() throws {
    let gate = try Gate(services: [Gated()], access: Self.table, tokens: Self.tokens())
    var context = Self.context(MethodDescriptor(service: "test.Gate", name: "Gone", kind: .unary))
    #expect(throws: ServiceError.self) { try gate.admit(&context) }
  }

  @Test("ID-8 keys are asked for once; after that a token is decided without waiting")
  func keysOnce() async throws {
    let asked = Mutex(0)
    let tokens = AccessTokens {
      asked.withLock { $0 += 1 }
      return ([Self.key.verifyingKey], "us")
    }
    let gate = try Gate(services: [Gated()], access: Self.table, tokens: tokens)
    var first = Self.context(Self.owner, authorization: "Bearer " + (try Self.token()))
    #expect(try !gate.admit(&first))
    try await gate.authenticate(&first)
    for _ in 0..<3 {
      var next = Self.context(Self.owner, authorization: "Bearer " + (try Self.token()))
      #expect(try gate.admit(&next))
    }
    // Made-up key names do not become calls to identity.
    for _ in 0..<3 {
      var forged = Self.context(Self.owner, authorization: "Bearer " + (try Self.token(.random())))
      _ = try? await gate.authenticate(&forged)
    }
    #expect(asked.withLock { $0 } == 1)
  }

  @Test("ID-8 while identity is away a new token is UNAVAILABLE, one of a known key is not")
  func identityAway() async throws {
    let isAway = Mutex(true)
    let asked = Mutex(0)
    let tokens = AccessTokens {
      asked.withLock { $0 += 1 }
      if isAway.withLock({ $0 }) { throw ServiceError.unavailable("away") }
      return ([Self.key.verifyingKey], "us")
    }
    let gate = try Gate(services: [Gated()], access: Self.table, tokens: tokens)
    var context = Self.context(Self.owner, authorization: "Bearer " + (try Self.token()))
    await #expect { try await gate.authenticate(&context) } throws: { ($0 as? ServiceError)?.code == .unavailable }
    isAway.withLock { $0 = false }
    try await gate.authenticate(&context)
    isAway.withLock { $0 = true }
    var next = Self.context(Self.owner, authorization: "Bearer " + (try Self.token()))
    try await gate.authenticate(&next)
    #expect(next.caller != .anonymous && asked.withLock { $0 } == 2)
  }

  @Test("ID-6 a handler can ask for a proved address")
  func verified() throws {
    let account = Identifier()
    #expect(try CallContext.owner(account, Self.owner).verifiedAccount().accountID == account)
    let unproved = CallContext.owner(account, Self.owner, emailVerified: false)
    #expect(try unproved.account().accountID == account)
    #expect { try unproved.verifiedAccount() } throws: { ($0 as? ServiceError)?.reason == "EMAIL_NOT_VERIFIED" }
    for context in [CallContext.service("vault", Self.owner), .anonymous(Self.owner)] {
      #expect { try context.account() } throws: { ($0 as? ServiceError)?.code == .unauthenticated }
    }
  }
}
