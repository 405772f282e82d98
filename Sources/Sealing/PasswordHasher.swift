private import CArgon2
package import EventLoop
package import Primitives

/// Argon2id (RFC 9106) over passwords and security answers, kept as PHC strings. One hash takes `memoryKiB` and a
/// quarter of a second at the defaults, so the pool's threads and queue bound the memory that strangers can claim.
package struct PasswordHasher: Sendable {
  /// Longer secrets are refused, never cut.
  package static let secretBytesMax = 1024
  private static let saltBytes = 16
  private static let tagBytes = 32

  private let pool: BlockingPool
  private let parameters: Parameters

  package init(pool: BlockingPool, memoryKiB: UInt32 = 65536, passes: UInt32 = 3, parallelism: UInt32 = 1) {
    self.pool = pool
    parameters = Parameters(memoryKiB: memoryKiB, passes: passes, parallelism: parallelism)
    precondition(parameters.areUsable, "unusable Argon2 parameters")
  }

  /// The PHC string to store: `$argon2id$v=19$m=…,t=…,p=…$salt$tag`. RESOURCE_EXHAUSTED when the pool is busy.
  package func hash(_ secret: Secret<String>) async throws -> String {
    let parameters = parameters
    return try await pool.run { try PasswordHasher.hash(secret, parameters) }
  }

  /// Whether `phc` was made from `secret`. False, too, for a string that is no PHC string of Argon2id. Compares in
  /// constant time. RESOURCE_EXHAUSTED when the pool is busy.
  package func verify(_ secret: Secret<String>, _ phc: String) async throws -> Bool {
    guard let stored = Parameters(phc: phc), stored.areUsable else { return false }
    return try await pool.run { try PasswordHasher.verify(secret, phc) }
  }

  /// Spends what `verify` spends; for an account that does not exist, so that its absence cannot be timed.
  package func dummyVerify(_ secret: Secret<String>) async throws {
    let parameters = parameters
    try await pool.run { _ = try PasswordHasher.hash(secret, parameters) }
  }

  /// Whether `phc` was made with other parameters than these and should be replaced at the next sign-in.
  package func needsRehash(_ phc: String) -> Bool { Parameters(phc: phc) != parameters }

  private static func hash(_ secret: Secret<String>, _ parameters: Parameters) throws -> String {
    let bytes = Array(secret.reveal().utf8)
    guard bytes.count <= secretBytesMax else { throw SealingError.tooLong }
    let salt = randomBytes(saltBytes)
    var encoded = [CChar](repeating: 0, count: 256)
    let result = argon2id_hash_encoded(
      parameters.passes, parameters.memoryKiB, parameters.parallelism, bytes, bytes.count, salt, salt.count, tagBytes,
      &encoded, encoded.count)
    guard result == ARGON2_OK.rawValue else { throw SealingError.failed }
    return String(decoding: encoded.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func verify(_ secret: Secret<String>, _ phc: String) throws -> Bool {
    let bytes = Array(secret.reveal().utf8)
    guard bytes.count <= secretBytesMax else { return false }
    let result = argon2id_verify(phc, bytes, bytes.count)
    // A short memory is our fault and must not read as a wrong password.
    guard result != ARGON2_MEMORY_ALLOCATION_ERROR.rawValue else { throw SealingError.failed }
    return result == ARGON2_OK.rawValue
  }
}

/// Argon2's cost.
private struct Parameters: Equatable {
  let memoryKiB: UInt32
  let passes: UInt32
  let parallelism: UInt32

  init(memoryKiB: UInt32, passes: UInt32, parallelism: UInt32) {
    self.memoryKiB = memoryKiB
    self.passes = passes
    self.parallelism = parallelism
  }

  /// Reads them from a PHC string of Argon2id version 1.3; nil for any other string.
  init?(phc: String) {
    guard phc.utf8.count <= 255, phc.utf8.allSatisfy({ 0x20..<0x7F ~= $0 }) else { return nil }
    let fields = phc.split(separator: "$", omittingEmptySubsequences: false)
    guard fields.count == 6, fields[0].isEmpty, fields[1] == "argon2id", fields[2] == "v=19",
      !fields[4].isEmpty, !fields[5].isEmpty, Base64.decode(fields[4]) != nil, Base64.decode(fields[5]) != nil
    else { return nil }
    let costs = fields[3].split(separator: ",", omittingEmptySubsequences: false)
    guard costs.count == 3, let memoryKiB = Parameters.number(costs[0], after: "m="),
      let passes = Parameters.number(costs[1], after: "t="), let parallelism = Parameters.number(costs[2], after: "p=")
    else { return nil }
    self.init(memoryKiB: memoryKiB, passes: passes, parallelism: parallelism)
  }

  /// Whether they lie between what Argon2 demands and what this process is ready to spend (1 GiB, 64 passes).
  var areUsable: Bool {
    (1...16).contains(parallelism) && (1...64).contains(passes) && (8 * parallelism...1 << 20).contains(memoryKiB)
  }

  private static func number(_ text: Substring, after name: String) -> UInt32? {
    guard text.hasPrefix(name), text.utf8.count > 2, text.utf8.dropFirst(2).allSatisfy({ 0x30...0x39 ~= $0 }) else {
      return nil
    }
    return UInt32(text.dropFirst(2))
  }
}
