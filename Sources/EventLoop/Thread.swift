internal import CLinux
internal import Glibc

/// A detached thread of the operating system.
enum Thread {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  static func start(name: String, _ body: @escaping @Sendable () -> Void) {
    let start = Start(name: name, body: body)
    var thread = pthread_t()
    // Safety: the retained box is taken back exactly once, by the new thread.
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        linux_set_thread_name(start.name)
        start.body()
        return nil
      }, Unmanaged.passRetained(start).toOpaque())
    precondition(result == 0, "the system refused a thread")
    pthread_detach(thread)
  }
}
