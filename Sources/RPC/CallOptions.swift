package import Primitives

/// What a caller asks of one call.
package struct CallOptions: Sendable {
  /// Time from the start of the call to its deadline. With `deadline` too, the earlier of both counts.
  package var timeout: Duration?
  package var deadline: Monotonic?
  package var metadata: Metadata
  /// Waits for a connection until the deadline, instead of failing with UNAVAILABLE while the target is out of reach.
  package var waitForReady: Bool
  /// Compresses the requests by gzip; a server that does not know it answers UNIMPLEMENTED. Not for requests that hold a
  /// secret beside text of a stranger: their length tells of the secret.
  package var compressesRequests: Bool
  /// When given, takes the metadata that comes with the response: the initial one before the first message is read, the
  /// trailing one before the end is.
  package var responseMetadata: ResponseMetadata?

  package init(
    timeout: Duration? = nil, deadline: Monotonic? = nil, metadata: Metadata = Metadata(), waitForReady: Bool = false,
    compressesRequests: Bool = false
  ) {
    self.timeout = timeout
    self.deadline = deadline
    self.metadata = metadata
    self.waitForReady = waitForReady
    self.compressesRequests = compressesRequests
  }

  /// The deadline that counts for a call that starts now.
  func effectiveDeadline() -> Monotonic? {
    guard let timeout else { return deadline }
    let end = Monotonic.now().advanced(by: timeout)
    guard let deadline else { return end }
    return min(end, deadline)
  }
}
