package import EventLoop
package import Primitives
internal import Synchronization

/// What a handler knows of the call it answers, beside the request.
package struct CallContext: Sendable {
  private let info: CallInfo
  /// Set by the server's `admit` or `authenticate` before the handler runs.
  package var caller: Caller = .anonymous

  init(_ info: CallInfo) {
    self.info = info
  }

  /// A context without a wire behind it, for a test of a handler.
  package init(
    method: MethodDescriptor, metadata: Metadata = Metadata(), deadline: Monotonic? = nil, peerAddress: SocketAddress,
    peerIdentity: String? = nil, caller: Caller = .anonymous
  ) {
    info = CallInfo(
      method: method, headers: RequestHeaders(metadata: metadata), deadline: deadline,
      peer: Peer(address: peerAddress, identity: peerIdentity))
    self.caller = caller
  }

  package var method: MethodDescriptor { info.method }
  /// All custom metadata; built anew at each access. For one value, `metadataValue` is cheaper.
  package var metadata: Metadata { info.headers.metadata }
  package var deadline: Monotonic? { info.deadline }
  package var peerAddress: SocketAddress { info.peer.address }
  /// The URI name of the peer's verified certificate, such as `spiffe://afterthoughts/vault`.
  package var peerIdentity: String? { info.peer.identity }
  /// This hop of the caller's W3C trace, or of a new one when the caller sent none that is well-formed.
  package var trace: TraceContext {
    TraceContext(
      continuing: info.headers.value("traceparent"), state: info.headers.list("tracestate"), fresh: info.traceIDs)
  }
  /// `traceparent` for what this call causes: the caller's trace, this call's span.
  package var traceparent: String { trace.traceparent }

  /// What the handler adds to the answer's metadata.
  package var responseMetadata: ResponseMetadata { info.responseMetadata }

  /// The first text value of that name, without building the whole of the metadata.
  package func metadataValue(_ name: StaticString) -> String? { info.headers.value(name) }

  /// Whether the request came compressed; of a stream, the request that was taken last.
  package var isRequestCompressed: Bool { info.isRequestCompressed.load(ordering: .relaxed) }

  /// Whether responses of this call are compressed, if the client takes gzip; the method's own setting at first. Not for
  /// responses that hold a secret beside text of a stranger: their length tells of the secret.
  package var compressesResponses: Bool {
    get { info.compressesResponses.load(ordering: .relaxed) }
    nonmutating set { info.compressesResponses.store(newValue, ordering: .relaxed) }
  }

  /// Options for a call made on behalf of this one: its deadline less 20 ms for the way back, and its trace.
  package func callOptions() -> CallOptions {
    var options = CallOptions()
    if let deadline { options.deadline = Monotonic(nanoseconds: deadline.nanoseconds - 20_000_000) }
    options.metadata.append(trace)
    return options
  }
}

/// The part of a call's context that never changes.
final class CallInfo: Sendable {
  private let added = Mutex<ResponseMetadata?>(nil)

  /// Made at the first use; most calls never do.
  var responseMetadata: ResponseMetadata {
    added.withLock { added in
      let metadata = added ?? ResponseMetadata()
      added = metadata
      return metadata
    }
  }

  /// nil when the handler has added none.
  var addedMetadata: ResponseMetadata? { added.withLock { $0 } }

  let method: MethodDescriptor
  let headers: RequestHeaders
  let deadline: Monotonic?
  let peer: Peer
  let traceIDs: FreshTraceIDs
  let isRequestCompressed = Atomic(false)
  let compressesResponses: Atomic<Bool>

  init(
    method: MethodDescriptor, headers: RequestHeaders, deadline: Monotonic?, peer: Peer,
    traceIDs: FreshTraceIDs = .random(), compressesResponses: Bool = false
  ) {
    self.method = method
    self.compressesResponses = Atomic(compressesResponses)
    self.traceIDs = traceIDs
    self.headers = headers
    self.deadline = deadline
    self.peer = peer
  }
}

/// The other end of a connection; one object for all its calls.
final class Peer: Sendable {
  let address: SocketAddress
  let identity: String?

  init(address: SocketAddress, identity: String?) {
    self.address = address
    self.identity = identity
  }
}
