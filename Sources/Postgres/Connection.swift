private import CPostgres
internal import EventLoop
internal import Primitives

/// One libpq connection in pipeline mode, driven by its loop. It sends segments and reports each one's end in order;
/// it knows nothing of pools or callers.
///
/// Safety: confined to its loop; only `cancelHandle` goes to another thread, which libpq allows.
final class Connection: EventHandler, @unchecked Sendable {
  private enum State {
    case idle
    case connecting((ServiceError?) -> Void)
    case open
    case closed
  }

  private enum Expectation {
    case prepare(PreparedStatement, Statement)
    case execute(Statement)
    case sync(Segment)
  }

  /// A text that this server session knows by a name.
  private final class PreparedStatement {
    let key: PreparedKey
    let name: String
    init(_ key: PreparedKey, _ name: String) {
      self.key = key
      self.name = name
    }
  }

  private struct PreparedKey: Hashable {
    let text: String
    let types: [PostgresType]
    static func == (left: PreparedKey, right: PreparedKey) -> Bool {
      left.text == right.text && left.types == right.types
    }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
  }

  /// Texts prepared on one connection; beyond that a new text is parsed every time.
  private static let preparedMax = 1000
  /// How long a cancelled statement may take to end before the connection is given up.
  private static let cancelPatience = Duration.seconds(2)

  private let loop: EventLoop
  private let blocking: BlockingPool
  private var state = State.idle
  private var handle: OpaquePointer?
  private var descriptor: Int32 = -1
  private var wantsWrite = false
  private var strayEnds = 0
  private var expectations = Queue<Expectation>()
  private var prepared: [PreparedKey: PreparedStatement] = [:]
  private var preparedCount = 0
  private var connectTimer: LoopTimer?
  /// What the server said before it closed the connection.
  private var lostCause: (any Error)?

  private var cancelTimer: LoopTimer?
  private var isCancelRunning = false
  private var afterCancel: [() -> Void] = []
  /// Cancel requests ever sent.
  private(set) var cancelRequests = 0

  /// Segments sent whose end has not come.
  private(set) var segmentsInFlight = 0
  private var segmentsEnded = 0
  /// A prepared statement no longer fitted its tables: better not to go on with this session.
  private(set) var isStale = false
  /// Called once when an open connection is lost or closed, after its segments have been failed.
  var onClose: ((Connection) -> Void)?
  var onNotification: ((_ channel: String, _ payload: String) -> Void)?

  init(loop: EventLoop, blocking: BlockingPool) {
    self.loop = loop
    self.blocking = blocking
  }

  deinit {
    if let handle { PQfinish(handle) }
  }

  var isOpen: Bool { if case .open = state { true } else { false } }

  // MARK: Connecting

  /// Connects; `completion` is called once, on the loop, never within this call when it succeeds.
  func open(_ parameters: ConnectionParameters, timeout: Duration, completion: @escaping (ServiceError?) -> Void) {
    state = .connecting(completion)
    connectTimer = loop.schedule(after: timeout) { [weak self] in
      self?.failConnecting("the attempt to connect took longer than \(timeout)")
    }
    guard parameters.needsLookUp else { return begin(parameters.start()) }
    // Looking a name up blocks inside libpq. The task ends with the look-up.
    Task(executorPreference: loop) { [self] in
      let started = try? await blocking.run { StartedConnection(handle: parameters.start()) }
      guard case .connecting = state else { return started?.discard() ?? () }
      begin(started?.handle)
    }
  }

  private func begin(_ started: OpaquePointer?) {
    handle = started
    guard let handle, PQstatus(handle) != CONNECTION_BAD else { return failConnecting(libpqMessage) }
    // As libpq asks: behave as if the first poll had said "writing".
    watch(.writable)
  }

  /// The socket can be another one after every poll, so it is registered anew each time.
  private func watch(_ interest: Interest) {
    descriptor = PQsocket(handle)
    guard descriptor >= 0 else { return failConnecting("libpq has no socket") }
    loop.register(descriptor, interest, handler: self)
  }

  private func unwatch() {
    if descriptor >= 0 { loop.deregister(descriptor) }
    descriptor = -1
  }

  private func pollConnecting() {
    unwatch()
    switch PQconnectPoll(handle) {
    case PGRES_POLLING_READING: watch(.readable)
    case PGRES_POLLING_WRITING: watch(.writable)
    case PGRES_POLLING_OK: opened()
    default: failConnecting(libpqMessage)
    }
  }

  private func opened() {
    guard case .connecting(let completion) = state, let handle else { return }
    guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else {
      return failConnecting(libpqMessage)
    }
    // Notices of the server would go to standard error as they are.
    PQsetNoticeReceiver(handle, { _, _ in }, nil)
    connectTimer?.cancel()
    connectTimer = nil
    state = .open
    watch(.readable)
    completion(nil)
  }

  private func failConnecting(_ reason: String) {
    guard case .connecting(let completion) = state else { return }
    release()
    completion(.databaseUnavailable(ConnectionFault(reason: reason)))
  }

  /// libpq's sentence: hosts, ports and roles, no values and no password.
  private var libpqMessage: String {
    var text = handle.flatMap { PQerrorMessage($0) }.map { String(cString: $0) } ?? "out of memory"
    while text.last?.isNewline == true { text.removeLast() }
    return text
  }

  // MARK: Sending

  /// Sends `segment` with a sync of its own and flushes it.
  func send(_ segment: Segment) {
    guard isOpen else { return segment.finish(.lost(.databaseUnavailable(nil))) }
    segmentsInFlight += 1
    var isSent = true
    for statement in segment.statements where isSent {
      statement.reset()
      statement.cancelRequestsBefore = cancelRequests
      isSent = send(statement)
    }
    expectations.append(.sync(segment))
    guard isSent, PQpipelineSync(handle) == 1 else { return lose() }
    flush()
  }

  private func send(_ statement: Statement) -> Bool {
    let parameters = statement.query.parameters
    let key = PreparedKey(text: statement.query.text, types: parameters.types)
    if let known = prepared[key] {
      expectations.append(.execute(statement))
      return send(parameters, name: known.name)
    }
    guard prepared.count < Connection.preparedMax else {
      expectations.append(.execute(statement))
      return send(parameters, text: key.text)
    }
    preparedCount += 1
    let new = PreparedStatement(key, "s\(preparedCount)")
    prepared[key] = new
    let types = key.types.map(\.rawValue)
    expectations.append(.prepare(new, statement))
    guard PQsendPrepare(handle, new.name, key.text, Int32(types.count), types) == 1 else { return false }
    expectations.append(.execute(statement))
    return send(parameters, name: new.name)
  }

  private func send(_ parameters: Parameters, name: String) -> Bool {
    parameters.withPointers { count, values, lengths, formats in
      PQsendQueryPrepared(handle, name, count, values, lengths, formats, 1) == 1
    }
  }

  private func send(_ parameters: Parameters, text: String) -> Bool {
    let types = parameters.types.map(\.rawValue)
    return parameters.withPointers { count, values, lengths, formats in
      PQsendQueryParams(handle, text, count, types, values, lengths, formats, 1) == 1
    }
  }

  private func flush() {
    switch PQflush(handle) {
    case 0: wantWrite(false)
    case 1: wantWrite(true)
    default: lose()
    }
  }

  private func wantWrite(_ wants: Bool) {
    guard wants != wantsWrite else { return }
    wantsWrite = wants
    loop.modify(descriptor, wants ? [.readable, .writable] : .readable)
  }

  // MARK: Receiving

  func ready(_ events: Interest) {
    switch state {
    case .connecting:
      pollConnecting()
    case .open:
      if events.contains(.writable), wantsWrite { flush() }
      if events.contains(.readable), isOpen { receive() }
    case .idle, .closed:
      break
    }
  }

  func loopEnds() {
    close()
  }

  private func receive() {
    guard PQconsumeInput(handle) == 1 else {
      // What had arrived before the loss still counts.
      takeResults()
      return lose()
    }
    takeResults()
    takeNotifications()
    if isOpen, PQstatus(handle) == CONNECTION_BAD { lose() }
  }

  private func takeResults() {
    while isOpen, !expectations.isEmpty, PQisBusy(handle) == 0 {
      guard let result = PQgetResult(handle) else {
        endStatement()
        continue
      }
      strayEnds = 0
      take(result)
    }
  }

  /// libpq ends each prepare and each execute, but not a sync, with a nil.
  private func endStatement() {
    switch expectations.first {
    case .prepare, .execute: _ = expectations.popFirst()
    case .sync, nil:
      // One follows a failure at the sync itself; more would mean that we and libpq are out of step.
      strayEnds += 1
      if strayEnds > 2 || PQstatus(handle) == CONNECTION_BAD { lose() }
    }
  }

  private func take(_ result: OpaquePointer) {
    switch (PQresultStatus(result), expectations.first) {
    case (PGRES_PIPELINE_SYNC, .sync(let segment)):
      PQclear(result)
      _ = expectations.popFirst()
      segmentsInFlight -= 1
      segmentsEnded += 1
      segment.finish(.synced)
    case (PGRES_COMMAND_OK, .execute(let statement)), (PGRES_TUPLES_OK, .execute(let statement)),
      (PGRES_EMPTY_QUERY, .execute(let statement)):
      statement.result = StatementResult(result)
    case (PGRES_COMMAND_OK, .prepare):
      PQclear(result)
    case (PGRES_PIPELINE_ABORTED, .prepare(let new, _)):
      PQclear(result)
      forget(new)
    case (PGRES_PIPELINE_ABORTED, .execute):
      PQclear(result)
    case (PGRES_FATAL_ERROR, let expectation?):
      let error = PostgresError(result: result)
      PQclear(result)
      fail(expectation, error)
    default:
      // COPY, or an answer out of order: this session cannot be trusted any more.
      PQclear(result)
      lose()
    }
  }

  private func fail(_ expectation: Expectation, _ error: PostgresError) {
    switch expectation {
    case .prepare(let new, let statement):
      forget(new)
      statement.error = error
    case .execute(let statement):
      if error.isStalePlan {
        isStale = true
        prepared[PreparedKey(text: statement.query.text, types: statement.query.parameters.types)] = nil
      }
      if statement.error == nil { statement.error = error }
    case .sync(let segment):
      segment.commitError = error
    }
    if error.isConnectionLoss { lostCause = error }
  }

  private func forget(_ statement: PreparedStatement) {
    if prepared[statement.key] === statement { prepared[statement.key] = nil }
  }

  private func takeNotifications() {
    guard let onNotification else { return }
    while let notification = PQnotifies(handle) {
      let channel = String(cString: notification.pointee.relname)
      let payload = String(cString: notification.pointee.extra)
      PQfreemem(notification)
      onNotification(channel, payload)
    }
  }

  // MARK: Cancelling

  /// Asks the server to stop what this connection runs now. When nothing has ended after two seconds, the connection is
  /// given up, so that a dead server cannot hold a cancelled caller.
  func cancelRunning() {
    guard isOpen, segmentsInFlight > 0, !isCancelRunning, let cancel = PQgetCancel(handle) else { return }
    cancelRequests += 1
    isCancelRunning = true
    let request = CancelRequest(handle: cancel)
    Task(executorPreference: loop) { [self] in
      _ = try? await blocking.run { request.send() }
      cancelEnded()
    }
    let ended = segmentsEnded
    cancelTimer?.cancel()
    cancelTimer = loop.schedule(after: Connection.cancelPatience) { [weak self] in
      guard let self, segmentsEnded == ended else { return }
      lose()
    }
  }

  private func cancelEnded() {
    isCancelRunning = false
    let waiting = afterCancel
    afterCancel = []
    for work in waiting { work() }
  }

  /// Runs `work` when no cancel request is on its way that could hit what is sent next.
  func whenNotCancelling(_ work: @escaping () -> Void) {
    if isCancelRunning { afterCancel.append(work) } else { work() }
  }

  // MARK: The end

  /// Gives the connection up; what was sent has an unknown outcome.
  private func lose() {
    guard isOpen else { return }
    let cause = lostCause ?? ConnectionFault(reason: libpqMessage)
    Log.warning("database_connection_lost", ["cause": "\(String(describing: cause))"])
    end(cause)
  }

  /// Closes without waiting for anything; segments in flight fail.
  func close() {
    if case .connecting = state { return failConnecting("the database was closed") }
    end(nil)
  }

  private func end(_ cause: (any Error)?) {
    guard isOpen else { return }
    release()
    for case .sync(let segment) in expectations.removeAll() {
      segment.finish(.lost(.outcomeUnknown(segment.error ?? cause)))
    }
    onClose?(self)
    onClose = nil
  }

  private func release() {
    connectTimer?.cancel()
    cancelTimer?.cancel()
    unwatch()
    if let handle { PQfinish(handle) }
    handle = nil
    prepared = [:]
    segmentsInFlight = 0
    state = .closed
  }
}
