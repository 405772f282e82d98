import Primitives
import Sealing
import Testing

struct TokenTests {
  @Test("OP-11 a link token has 256 random bits in 43 characters, and only its hash need be kept")
  func linkToken() throws {
    let token = LinkToken.random()
    let text = token.text.reveal()
    #expect(text.count == 43)
    let again = try #require(LinkToken(text))
    #expect(again.hash == token.hash && token.hash.count == 32)
    #expect(token.hash == Digest.sha256(Base64.decode(text)!))
    #expect(Set((0..<1000).map { _ in LinkToken.random().hash }).count == 1000)
    #expect("\(token)" == "[redacted]")
  }

  @Test("OP-11 a link token has one spelling")
  func linkTokenSpelling() {
    let text = String(repeating: "-_Az", count: 10) + "AAA"
    let bad = [
      "", String(text.dropLast()), text + "A", text + "=", text.dropLast() + "B", "+" + text.dropFirst(),
      " " + text.dropFirst(), String(repeating: "é", count: 43),
    ]
    #expect(LinkToken(text) != nil)
    for text in bad { #expect(LinkToken(text) == nil, "\(text)") }
  }

  @Test("Sealing gives a page token that opens for the same caller, call and arguments only")
  func pageToken() throws {
    let sealer = try PageTokenSealer(key: Secret(randomBytes(32)))
    let token = try sealer.seal([1, 2, 3], caller: "a", method: "/s/List", arguments: [9])
    #expect(try sealer.open(token, caller: "a", method: "/s/List", arguments: [9]) == [1, 2, 3])
    let foreign = try PageTokenSealer(key: Secret(randomBytes(32)))
    let attempts: [() throws -> [UInt8]] = [
      { try sealer.open(token, caller: "b", method: "/s/List", arguments: [9]) },
      { try sealer.open(token, caller: "a", method: "/s/List2", arguments: [9]) },
      { try sealer.open(token, caller: "a/s", method: "/List", arguments: [9]) },
      { try sealer.open(token, caller: "a", method: "/s/List", arguments: [8]) },
      { try foreign.open(token, caller: "a", method: "/s/List", arguments: [9]) },
      { try sealer.open("", caller: "a", method: "/s/List", arguments: [9]) },
      { try sealer.open("AQ", caller: "a", method: "/s/List", arguments: [9]) },
      { try sealer.open(String(repeating: "A", count: 1 << 20), caller: "a", method: "/s/List", arguments: [9]) },
      { try sealer.open("B" + token.dropFirst(), caller: "a", method: "/s/List", arguments: [9]) },
      { try sealer.open(token.dropLast(4) + "AAAA", caller: "a", method: "/s/List", arguments: [9]) },
    ]
    for attempt in attempts {
      let error = #expect(throws: ServiceError.self) { try attempt() }
      #expect(error?.code == .invalidArgument && error?.violations.first?.field == "page_token")
    }
  }

  @Test("Sealing refuses a page token key of another length and a cursor over 1 KiB")
  func pageTokenLimits() throws {
    #expect(throws: SealingError.self) { try PageTokenSealer(key: Secret(randomBytes(31))) }
    let sealer = try PageTokenSealer(key: Secret(randomBytes(32)))
    let longest = try sealer.seal(randomBytes(1024), caller: "a", method: "m", arguments: [])
    #expect(try sealer.open(longest, caller: "a", method: "m", arguments: []).count == 1024)
    #expect(throws: SealingError.tooLong) {
      try sealer.seal(randomBytes(1025), caller: "a", method: "m", arguments: [])
    }
  }

  @Test("Sealing hashes as FIPS 180-4 and RFC 4231 say")
  func digests() {
    #expect(
      Hex.encode(Digest.sha256([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(
      Hex.encode(Digest.hmacSHA256(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8)))
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    #expect(
      Hex.encode(Digest.hmacSHA256([], key: [])) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    #expect(constantTimeEqual([1, 2], [1, 2]) && !constantTimeEqual([1, 2], [1, 3]))
    #expect(constantTimeEqual([], []) && !constantTimeEqual([1], []))
  }
}
