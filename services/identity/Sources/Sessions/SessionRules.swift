package import Primitives

/// How long sessions last (proof: sessions; wire contract of `Session`).
package enum SessionRules {
  package static let accessLifetime: Duration = .seconds(600)
  package static let idleMax: Duration = .seconds(30 * 86_400)
  package static let ageMax: Duration = .seconds(180 * 86_400)

  package static func isLive(created: Instant, lastUsed: Instant, ended: Bool, at now: Instant) -> Bool {
    !ended && now < lastUsed.advanced(by: idleMax) && now < created.advanced(by: ageMax)
  }
}
