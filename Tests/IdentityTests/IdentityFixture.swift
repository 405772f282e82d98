import API
import EventLoop
import Postgres
import Primitives
import Protobuf
import RPC
import Sealing
import ServiceKit
import TestKit
import Testing
import identity

typealias Methods = IdentityV1.IdentityServiceMethods
typealias DirectoryMethods = IdentityV1.DirectoryServiceMethods

/// The real handlers over a database of their own. Only argon2id is weaker than in service, for speed.
struct IdentityFixture {
  static let password = "seven blue herons"
  static let answer = "Rue  de l'Église"

  let runtime: ServiceRuntime
  let config: IdentityConfig
  let service: IdentityService
  let directory: DirectoryService

  var database: Database { runtime.database }

  static func with(_ body: @escaping @Sendable (IdentityFixture) async throws -> Void) async throws {
    try await TestRuntime.with(name: "identity", migrations: Migrations.all) { runtime in
      try await body(try IdentityFixture(runtime))
    }
  }

  private init(_ runtime: ServiceRuntime) throws {
    self.runtime = runtime
    config = IdentityConfig(signingKey: .random())
    let hasher = PasswordHasher(pool: runtime.pool, memoryKiB: 64, passes: 1)
    service = IdentityService(runtime: runtime, config: config, courier: try runtime.courier(), hasher: hasher)
    directory = DirectoryService(runtime: runtime, config: config, hasher: hasher)
  }

  // MARK: Requests

  static func registration(email: String = "anna@afterthoughts.example") -> IdentityV1.RegisterRequest {
    IdentityV1.RegisterRequest(
      requestID: "\(Identifier())", email: email, password: password, passwordConfirmation: password,
      displayName: "Anna Berg", securityQuestionID: "childhood_street", securityAnswer: answer, termsAccepted: true,
      termsVersion: 1, timeZone: "Europe/Berlin")
  }

  func register(email: String = "anna@afterthoughts.example") async throws -> IdentityV1.RegisterResponse {
    try await register(IdentityFixture.registration(email: email))
  }

  func register(_ request: IdentityV1.RegisterRequest) async throws -> IdentityV1.RegisterResponse {
    try await service.register(request, .anonymous(Methods.register))
  }

  /// Registers and follows the mailed link.
  func registerVerified(email: String = "anna@afterthoughts.example") async throws -> Identifier {
    let id = try await register(email: email).accountID
    _ = try await verify(try #require(try await mails().last).token)
    return id
  }

  func logIn(
    email: String = "anna@afterthoughts.example", password: String = IdentityFixture.password
  ) async throws -> IdentityV1.Session {
    let request = IdentityV1.LogInRequest(requestID: "\(Identifier())", email: email, password: password)
    return try #require(try await service.logIn(request, .anonymous(Methods.logIn)).session)
  }

  func refresh(_ token: String, requestID: Identifier = Identifier()) async throws -> IdentityV1.Session {
    let request = IdentityV1.RefreshRequest(requestID: "\(requestID)", refreshToken: token)
    return try #require(try await service.refresh(request, .anonymous(Methods.refresh)).session)
  }

  func verify(_ token: String, requestID: Identifier = Identifier()) async throws -> IdentityV1.VerifyEmailResponse {
    try await service.verifyEmail(
      IdentityV1.VerifyEmailRequest(requestID: "\(requestID)", token: token), .anonymous(Methods.verifyEmail))
  }

  func resend(_ account: Identifier) async throws {
    _ = try await service.resendVerification(
      IdentityV1.ResendVerificationRequest(requestID: "\(Identifier())"),
      .owner(account, Methods.resendVerification, emailVerified: false))
  }

  func account(_ id: Identifier) async throws -> IdentityV1.Account {
    try #require(try await service.getAccount(.init(), .owner(id, Methods.getAccount)).account)
  }

  func closeAccount(_ id: Identifier) async throws {
    let event = ConfirmationV1.PassingConfirmed(
      accountID: "\(id)", confirmationID: "\(Identifier())", administratorID: "\(Identifier())")
    try await database.transaction { try await IdentityEvents.passingConfirmed(event, $0) }
  }

  // MARK: What was left behind

  /// The mails that wait for the notifications service, oldest first.
  func mails() async throws -> [QueuedMail] {
    let key = try #require(try await runtime.dataKeys.existingKey(for: DataKeys.serviceOwner, in: database))
    return try await database.query("SELECT send_id, sealed FROM send_queue ORDER BY create_time, send_id").map { row in
      let (id, sealed) = try row.decode((Identifier, [UInt8]).self)
      let binding = Binding(table: "send_queue", column: "sealed", row: id, owner: DataKeys.serviceOwner)
      return QueuedMail(try NotificationsV1.SendRequest(serialized: try key.open(sealed, binding)))
    }
  }

  /// The types of the published events, oldest first.
  func events() async throws -> [String] {
    try await database.query("SELECT type FROM outbox ORDER BY sequence").map { row in
      String(try row.decode(String.self, at: 0).split(separator: ".").last ?? "")
    }
  }

  func activity(_ account: Identifier) async throws -> [String] {
    try await database.query("SELECT event FROM activity WHERE account_id = \(account) ORDER BY sequence")
      .map { try $0.decode(String.self, at: 0) }
  }

  func count(_ table: String) async throws -> Int {
    try await database.query("SELECT count(*) FROM \(unescaped: table)")[0].decode(Int.self, at: 0)
  }

  /// Every row of every table of the schema as text; bytes as hexadecimal.
  func dump() async throws -> String {
    let tables = try await database.query(
      "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'identity'")
    var text = ""
    for table in try tables.map({ try $0.decode(String.self, at: 0) }) {
      for row in try await database.query("SELECT t::text FROM \(unescaped: table) AS t") {
        text += try row.decode(String.self, at: 0) + "\n"
      }
    }
    return text
  }
}

/// A verification mail on its way.
struct QueuedMail {
  let request: NotificationsV1.SendRequest

  init(_ request: NotificationsV1.SendRequest) { self.request = request }

  var link: String {
    guard case .emailVerification(let content) = request.content else { return "" }
    return content.link
  }
  var token: String { String(link.split(separator: "/").last ?? "") }
}

extension IdentityV1.RegisterResponse {
  var accountID: Identifier { Identifier(account?.accountID ?? "") ?? Identifier(high: 0, low: 0) }
}
