internal import API
internal import RPC
package import Sealing
package import ServiceKit

/// Accounts and sessions. The handlers are in the folders of their nouns.
package struct IdentityService: IdentityV1.IdentityService {
  let runtime: ServiceRuntime
  package let hasher: PasswordHasher
  let courier: Courier
  let tokens: SessionTokens
  let timeZones: TimeZones
  let throttle: SignInThrottles

  /// `hasher` is for tests, which hash a thousand times; nil means full strength, on the runtime's pool.
  package init(
    runtime: ServiceRuntime, config: IdentityConfig, courier: Courier, hasher: PasswordHasher? = nil
  ) {
    self.runtime = runtime
    self.courier = courier
    self.hasher = hasher ?? PasswordHasher(pool: runtime.pool)
    tokens = SessionTokens(
      issuer: AccessTokenIssuer(key: config.signingKey, issuer: config.issuer))
    timeZones = TimeZones(database: runtime.database)
    throttle = SignInThrottles(database: runtime.database, dataKeys: runtime.dataKeys)
  }
}
