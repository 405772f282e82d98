import Glibc

/// Blocks threads until it is opened.
///
/// Safety: the semaphore lives at a fixed address until `deinit`.
final class Gate: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit { semaphore.deallocate() }

  func wait() {
    sem_wait(semaphore)
    sem_post(semaphore)
  }

  func open() { sem_post(semaphore) }
}
