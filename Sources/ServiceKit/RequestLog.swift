package import Postgres
internal import Primitives
package import Protobuf
package import RPC
internal import Sealing

/// Makes an effectful call safe to repeat: its answer is stored in the transaction of its effect, and a repeat with the
/// same `request_id` returns that answer. Answers are sealed; the digest of a request is keyed.
package struct RequestLog: Sendable {
  private let database: Database
  private let dataKeys: DataKeys

  package init(database: Database, dataKeys: DataKeys) {
    self.database = database
    self.dataKeys = dataKeys
  }

  /// Runs `body` at most once for this caller, method and `requestID`, in a transaction. A failed run leaves nothing.
  /// INVALID_ARGUMENT (REQUEST_ID_REUSED) when the id came with another request before; for callers that are not known
  /// by name the id alone is the caller. `replayFor` limits how long an answer can be had again, at most 24 h.
  package func once<Request: Message, Response: Message>(
    _ requestID: String, _ request: Request, _ context: CallContext, replayFor: Duration = .seconds(86_400),
    _ body: (Transaction) async throws -> Response
  ) async throws -> Response {
    try await run(try await entry(requestID, request, context, replayFor), body)
  }

  /// The same for a call that must do something slow first, outside the transaction: hash a password, ask another
  /// service. A repeat is answered before `prepare` runs.
  package func once<Request: Message, Prepared: Sendable, Response: Message>(
    _ requestID: String, _ request: Request, _ context: CallContext, replayFor: Duration = .seconds(86_400),
    prepare: () async throws -> Prepared, _ body: (Prepared, Transaction) async throws -> Response
  ) async throws -> Response {
    let entry = try await entry(requestID, request, context, replayFor)
    if let response: Response = try entry.replay(try await database.query(entry.lookup)) { return response }
    let prepared = try await prepare()
    return try await run(entry) { try await body(prepared, $0) }
  }

  private func entry(
    _ requestID: String, _ request: some Message, _ context: CallContext, _ replayFor: Duration
  ) async throws -> Entry {
    let id = try Fields.identifier(requestID, "request_id")
    let key = try await dataKeys.serviceKey(in: database)
    let method = context.method.path
    return Entry(
      id: id, caller: context.caller.scope, method: method,
      digest: key.authenticate(Array(method.utf8) + [0] + request.serialized()),
      replaySeconds: Double(replayFor.components.seconds), key: key)
  }

  private func run<Response: Message>(
    _ entry: Entry, _ body: (Transaction) async throws -> Response
  ) async throws -> Response {
    try await database.transaction { transaction in
      guard try await transaction.execute(entry.insert) == 1 else {
        guard let response: Response = try entry.replay(try await transaction.query(entry.lookup)) else {
          throw ServiceError.unavailable("The first call has just been undone; try again.")
        }
        return response
      }
      let response = try await body(transaction)
      _ = try await transaction.execute(try entry.update(response))
      return response
    }
  }

  /// Forgets answers older than 24 h; returns how many.
  package func purge() async throws -> Int {
    try await database.execute("DELETE FROM requests WHERE create_time < now() - interval '24 hours'")
  }
}

/// One row of the request log, and the statements that touch it.
private struct Entry: Sendable {
  let id: Identifier
  let caller: String
  let method: String
  let digest: [UInt8]
  let replaySeconds: Double
  let key: DataKey

  private var binding: Binding {
    Binding(table: "requests", column: "response", row: id, owner: DataKeys.serviceOwner)
  }

  var insert: Query {
    """
    INSERT INTO requests (caller, method, request_id, digest) VALUES (\(caller), \(method), \(id), \(digest))
    ON CONFLICT DO NOTHING
    """
  }

  var lookup: Query {
    """
    SELECT digest, response, create_time > now() - make_interval(secs => \(replaySeconds))
    FROM requests WHERE caller = \(caller) AND method = \(method) AND request_id = \(id)
    """
  }

  func update(_ response: some Message) throws -> Query {
    let sealed = try key.seal(response.serialized(), binding)
    return """
      UPDATE requests SET response = \(sealed)
      WHERE caller = \(caller) AND method = \(method) AND request_id = \(id)
      """
  }

  /// The stored answer; nil when there is no row.
  func replay<Response: Message>(_ rows: [Row]) throws -> Response? {
    guard let row = rows.first else { return nil }
    let (stored, response, fresh) = try row.decode(([UInt8], [UInt8]?, Bool).self)
    guard constantTimeEqual(stored, digest) else {
      throw ServiceError(
        .invalidArgument, "request_id: was used before with another request; make a new one",
        reason: "REQUEST_ID_REUSED",
        violations: [.init(field: "request_id", description: "was used before with another request")])
    }
    guard fresh, let response else {
      throw ServiceError.precondition("REQUEST_ID_SPENT", "The answer to this request is no longer kept.")
    }
    return try Response(serialized: try key.open(response, binding))
  }
}

extension Caller {
  /// Whose request ids these are.
  var scope: String {
    switch self {
    case .anonymous: "anonymous"
    case .account(let account): "account:\(account.accountID)"
    case .service(let name): "service:\(name)"
    }
  }
}
