/// How a `Database` connects and what it bounds.
package struct DatabaseConfiguration: Sendable {
  /// Connections of each loop for transactions, besides its one shared connection.
  package var transactionConnectionsPerLoop: Int
  /// Transactions of each loop that may wait for a connection; one more is refused with RESOURCE_EXHAUSTED.
  package var transactionsWaitingMax: Int
  /// How long a transaction waits for a connection before it fails with UNAVAILABLE.
  package var transactionWaitMax: Duration
  /// Single statements of each loop that may wait; one more is refused with RESOURCE_EXHAUSTED.
  package var statementsWaitingMax: Int
  /// How long an attempt to connect may take.
  package var connectTimeout: Duration
  /// The server ends a statement that runs longer (DEADLINE_EXCEEDED, reason STATEMENT_TIMEOUT).
  package var statementTimeout: Duration
  /// The server ends a session whose transaction sits idle for longer.
  package var idleInTransactionTimeout: Duration
  /// Shown in `pg_stat_activity`.
  package var applicationName: String
  /// The schema that names without a schema mean; nil leaves the role's own search path.
  package var schema: String?

  package init(
    transactionConnectionsPerLoop: Int = 4, transactionsWaitingMax: Int = 1000,
    transactionWaitMax: Duration = .seconds(5), statementsWaitingMax: Int = 10_000,
    connectTimeout: Duration = .seconds(5), statementTimeout: Duration = .seconds(30),
    idleInTransactionTimeout: Duration = .seconds(60), applicationName: String = "afterthoughts",
    schema: String? = nil
  ) {
    self.transactionConnectionsPerLoop = transactionConnectionsPerLoop
    self.transactionsWaitingMax = transactionsWaitingMax
    self.transactionWaitMax = transactionWaitMax
    self.statementsWaitingMax = statementsWaitingMax
    self.connectTimeout = connectTimeout
    self.statementTimeout = statementTimeout
    self.idleInTransactionTimeout = idleInTransactionTimeout
    self.applicationName = applicationName
    self.schema = schema
  }
}
