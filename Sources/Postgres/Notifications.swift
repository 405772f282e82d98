internal import EventLoop
internal import Primitives
private import Synchronization

/// A place in the list of those who listen on a channel; it ends with `cancel`, not with its last reference.
package struct ListenRegistration: Sendable {
  private let onCancel: @Sendable () -> Void

  init(onCancel: @escaping @Sendable () -> Void) {
    self.onCancel = onCancel
  }

  /// No call of the body begins after the loop has seen this.
  package func cancel() { onCancel() }
}

/// The one connection that listens, made when first needed and again whenever it is lost.
///
/// Safety: confined to its loop, apart from `register`, `close` and the counter.
final class Notifications: @unchecked Sendable {
  private struct Listener {
    let channel: String
    let body: @Sendable (String) -> Void
  }

  private let loop: EventLoop
  private let connector: Connector
  private let nextID = Atomic<Int>(0)
  private var listeners: [Int: Listener] = [:]
  private var connection: Connection?
  private var isConnecting = false
  private var isClosed = false

  init(loop: EventLoop, connector: Connector) {
    self.loop = loop
    self.connector = connector
  }

  func register(_ channel: String, _ body: @escaping @Sendable (String) -> Void) -> ListenRegistration {
    precondition(!channel.isEmpty && channel.utf8.count < 64 && !channel.utf8.contains(0), "a channel's name")
    let id = nextID.wrappingAdd(1, ordering: .relaxed).newValue
    loop.execute { self.add(id, Listener(channel: channel, body: body)) }
    return ListenRegistration { self.loop.execute { self.remove(id) } }
  }

  private func add(_ id: Int, _ listener: Listener) {
    guard !isClosed else { return }
    listeners[id] = listener
    if connection == nil { return connect() }
    listen(listener.channel) { [self] in listeners[id]?.body("") }
  }

  private func remove(_ id: Int) {
    guard let listener = listeners.removeValue(forKey: id) else { return }
    if listeners.isEmpty {
      connection?.close()
    } else if !listeners.values.contains(where: { $0.channel == listener.channel }) {
      connection?.send(Segment([Statement("UNLISTEN \(unescaped: Self.quoted(listener.channel))")]) { _, _ in })
    }
  }

  private func connect() {
    guard !isConnecting, connection == nil, !listeners.isEmpty, !isClosed else { return }
    isConnecting = true
    connector.connect { [self] result in
      isConnecting = false
      switch result {
      case .success(let new): connected(new)
      case .failure:
        let pause = max(connector.pause, .milliseconds(50))
        loop.schedule(after: pause) { [weak self] in self?.connect() }
      }
    }
  }

  private func connected(_ new: Connection) {
    guard !listeners.isEmpty else { return new.close() }
    connection = new
    new.onNotification = { [weak self] channel, payload in
      self?.tell(channel, payload)
    }
    new.onClose = { [weak self] _ in
      guard let self else { return }
      connection = nil
      connect()
    }
    for channel in Set(listeners.values.map(\.channel)) {
      listen(channel) { [self] in tell(channel, "") }
    }
  }

  private func listen(_ channel: String, _ completion: @escaping () -> Void) {
    let statement = Statement("LISTEN \(unescaped: Self.quoted(channel))")
    connection?.send(
      Segment([statement]) { segment, end in
        guard case .synced = end else { return }
        if let error = segment.error {
          return Log.error("database_listen_failed", ["cause": "\(String(describing: error))"])
        }
        completion()
      })
  }

  private func tell(_ channel: String, _ payload: String) {
    for listener in listeners.values where listener.channel == channel { listener.body(payload) }
  }

  private static func quoted(_ channel: String) -> String {
    "\"" + channel.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }

  func close() async {
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      loop.execute { [self] in
        isClosed = true
        listeners = [:]
        connector.close()
        connection?.close()
        continuation.resume()
      }
    }
  }
}
