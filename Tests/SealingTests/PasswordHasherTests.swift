import EventLoop
import Primitives
import Sealing
import Testing

struct PasswordHasherTests {
  private let pool = BlockingPool(name: "hash", threads: 2, queueMax: 64)
  private var hasher: PasswordHasher { PasswordHasher(pool: pool, memoryKiB: 64, passes: 1) }

  @Test("OP-10 a secret verifies against its own hash only, and two hashes of it differ")
  func hashAndVerify() async throws {
    let phc = try await hasher.hash(Secret("correct horse"))
    #expect(phc.hasPrefix("$argon2id$v=19$m=64,t=1,p=1$"))
    #expect(try await hasher.verify(Secret("correct horse"), phc))
    #expect(try await !hasher.verify(Secret("correct horsf"), phc))
    #expect(try await !hasher.verify(Secret(""), phc))
    #expect(try await hasher.hash(Secret("correct horse")) != phc)
  }

  @Test("OP-10 a hash made by Argon2's own tool verifies")
  func knownAnswer() async throws {
    // The reference implementation's test vector: echo -n password | argon2 somesalt -id -t 2 -k 256 -p 1 -l 32
    let phc = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
    #expect(try await hasher.verify(Secret("password"), phc))
    #expect(try await !hasher.verify(Secret("Password"), phc))
  }

  @Test(
    "OP-10 a malformed or foreign hash verifies nothing and does no harm",
    arguments: [
      "", "$", "plain", "$argon2id$", "$argon2id$v=19$m=64,t=1,p=1$", "$argon2id$v=19$m=64,t=1,p=1$AAAA$",
      "$argon2id$v=19$m=64,t=1,p=1$!!!!$AAAA", "$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
      "$argon2id$v=16$m=64,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
      "$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
      "$argon2id$v=19$m=64,t=4294967295,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
      "$argon2id$v=19$m=64,t=1,p=99999$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
      "$argon2id$v=19$m=7,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
      "$argon2id$v=19$m=-1,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
      "$2b$12$abcdefghijklmnopqrstuv", String(repeating: "$", count: 5), String(repeating: "A", count: 100_000),
      "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$AAAA\u{0}AAAA",
    ])
  func malformed(phc: String) async throws {
    #expect(try await !hasher.verify(Secret("password"), phc))
    #expect(hasher.needsRehash(phc))
  }

  @Test("OP-10 a hash made with other parameters still verifies and asks to be replaced")
  func needsRehash() async throws {
    let stronger = PasswordHasher(pool: pool, memoryKiB: 128, passes: 2)
    let phc = try await hasher.hash(Secret("x"))
    #expect(try await stronger.verify(Secret("x"), phc))
    #expect(stronger.needsRehash(phc) && !hasher.needsRehash(phc))
  }

  @Test("OP-10 the defaults are 64 MiB, 3 passes, 1 lane, 16 bytes of salt and 32 of tag")
  func defaults() async throws {
    let phc = try await PasswordHasher(pool: pool).hash(Secret("x"))
    let fields = phc.split(separator: "$")
    #expect(fields[2] == "m=65536,t=3,p=1")
    #expect(Base64.decode(fields[3])?.count == 16 && Base64.decode(fields[4])?.count == 32)
  }

  @Test("OP-10 a secret of 1024 bytes is taken whole and one of 1025 is refused")
  func limits() async throws {
    let longest = String(repeating: "a", count: 1024)
    let phc = try await hasher.hash(Secret(longest))
    #expect(try await hasher.verify(Secret(longest), phc))
    #expect(try await !hasher.verify(Secret(longest.dropLast() + "b"), phc))
    #expect(try await !hasher.verify(Secret(longest + "a"), phc))
    await #expect(throws: SealingError.tooLong) { try await hasher.hash(Secret(longest + "a")) }
  }

  @Test("OP-12 an unknown account costs one hash and says nothing")
  func dummy() async throws {
    try await hasher.dummyVerify(Secret("whatever"))
  }
}
