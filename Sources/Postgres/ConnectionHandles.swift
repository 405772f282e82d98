private import CPostgres

/// Why a connection could not be made or was lost, in libpq's words.
struct ConnectionFault: Error, CustomStringConvertible {
  let reason: String
  var description: String { reason }
}

/// Safety: a connection that only its holder knows, on its way from a pool thread to the loop.
struct StartedConnection: @unchecked Sendable {
  let handle: OpaquePointer?
  func discard() { if let handle { PQfinish(handle) } }
}

/// Safety: libpq lets any one thread use a PGcancel; it is freed by the one that sends it.
struct CancelRequest: @unchecked Sendable {
  let handle: OpaquePointer

  func send() {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      _ = PQcancel(handle, buffer.baseAddress, Int32(buffer.count))
    }
    PQfreeCancel(handle)
  }
}
