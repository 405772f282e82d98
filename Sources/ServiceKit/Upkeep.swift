internal import Events
internal import Primitives

/// Small regular work that every service has: makes its own data key at first start, forgets old answers each hour.
enum Upkeep {
  static func run(_ runtime: ServiceRuntime) async {
    var backoff = Backoff()
    while !Task.isCancelled {
      do {
        _ = try await runtime.dataKeys.serviceKey(in: runtime.database)
        let purged = try await runtime.requests.purge()
        Log.debug("old answers forgotten", ["count": .number(Int64(purged))])
        backoff.reset()
        await pause(.seconds(3600))
      } catch {
        Log.warning("upkeep failed", ["error": .text("\(error)")])
        await pause(backoff.next())
      }
    }
  }
}
