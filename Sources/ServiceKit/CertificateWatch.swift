package import EventLoop
internal import Events
internal import Glibc
internal import Primitives
internal import Synchronization

/// Has certificates read again when their files change, or when the process gets SIGHUP: connections that begin after
/// it use the new ones, those that exist go on. What cannot be read leaves the present ones in use.
package final class CertificateWatch: Sendable {
  private struct Stamp: Equatable {
    let inode: UInt64
    let bytes: Int64
    let seconds: Int
    let nanoseconds: Int
  }

  static let period: Duration = .seconds(30)

  private let paths: [String]
  private let contexts: [TLSContext]
  private let pool = BlockingPool(name: "certificates", threads: 1, queueMax: 4)
  private let loaded: Mutex<[Stamp?]>

  /// `contexts` were made of the files at `paths` just now.
  package init(paths: TransportConfig.TLSPaths, contexts: [TLSContext]) {
    self.paths = [paths.certificate, paths.key, paths.authority]
    self.contexts = contexts
    loaded = Mutex(self.paths.map { CertificateWatch.stamp($0) })
  }

  /// Watches in a task of its own until that is cancelled; nil without TLS.
  package static func start(
    _ config: TransportConfig, contexts: [TLSContext?], group: EventLoopGroup
  ) -> Task<Void, Never>? {
    guard let paths = config.tls else { return nil }
    let watch = CertificateWatch(paths: paths, contexts: contexts.compactMap { $0 })
    return Task(executorPreference: group.next()) { await watch.run() }
  }

  /// Looks every 30 s and at each SIGHUP, until the task is cancelled. On an event loop.
  package func run() async {
    while !Task.isCancelled {
      let seen = ProcessSignals.hangUps.count
      await ProcessSignals.hangUps.wait(after: seen, timeout: CertificateWatch.period)
      if Task.isCancelled { return }
      await look(isAsked: ProcessSignals.hangUps.count > seen)
    }
  }

  /// Reads the files again if one has changed, or if asked to. Returns whether new ones are in use.
  @discardableResult
  package func look(isAsked: Bool = false) async -> Bool {
    do {
      let isNew = try await pool.run { try self.reload(isAsked) }
      if isNew { Log.info("certificates reloaded") }
      return isNew
    } catch {
      Log.error("certificates not reloaded; the present ones stay in use", ["error": .text("\(error)")])
      return false
    }
  }

  private func reload(_ isAsked: Bool) throws -> Bool {
    // Looked at before they are read: what changes meanwhile is seen the next time.
    let stamps = paths.map { CertificateWatch.stamp($0) }
    guard isAsked || loaded.withLock({ $0 != stamps }) else { return false }
    for context in contexts { try context.reload() }
    loaded.withLock { $0 = stamps }
    return true
  }

  private static func stamp(_ path: String) -> Stamp? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Stamp(
      inode: UInt64(status.st_ino), bytes: Int64(status.st_size), seconds: status.st_mtim.tv_sec,
      nanoseconds: status.st_mtim.tv_nsec)
  }
}
