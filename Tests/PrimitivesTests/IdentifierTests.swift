import Primitives
import Testing

struct IdentifierTests {
  @Test("Primitives identifiers made later sort later, as values, as text and as bytes")
  func order() {
    let times = [0, 1, 255, 256, 65_535, 65_536, 1_796_067_100_000, 1_796_067_100_001, 1 << 47]
    let all = times.map { Identifier(at: Instant(microseconds: Int64($0) * 1000)) }
    for (earlier, later) in zip(all, all.dropFirst()) {
      #expect(earlier < later)
      #expect(earlier.description < later.description)
      #expect(earlier.bytes.lexicographicallyPrecedes(later.bytes))
    }
  }

  @Test("Primitives identifiers carry their time, version 7 and variant 2, and do not repeat")
  func version() {
    let now = Instant.now()
    var seen: Set<Identifier> = []
    for _ in 0..<10_000 {
      let identifier = Identifier(at: now)
      #expect(Int64(identifier.high >> 16) == now.microseconds / 1000)
      #expect(identifier.high >> 12 & 15 == 7)
      #expect(identifier.low >> 62 == 2)
      seen.insert(identifier)
    }
    #expect(seen.count == 10_000)
  }

  @Test("Primitives identifiers read back the text and the bytes they give")
  func forms() throws {
    let text = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    let identifier = try #require(Identifier(text))
    #expect(identifier.high == 0x017F_22E2_79B0_7CC3 && identifier.low == 0x98C4_DC0C_0C07_398F)
    #expect(identifier.description == text)
    #expect(Identifier(text.uppercased()) == identifier)
    #expect(Identifier(bytes: identifier.bytes) == identifier)
    #expect(Identifier(bytes: identifier.bytes.dropLast()) == nil)
    for _ in 0..<1000 {
      let random = Identifier(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max))
      #expect(Identifier(random.description) == random && Identifier(bytes: random.bytes) == random)
    }
  }

  @Test(
    "Primitives identifiers refuse any other text",
    arguments: [
      "", "017f22e2-79b0-7cc3-98c4-dc0c0c07398", "017f22e2-79b0-7cc3-98c4-dc0c0c07398ff",
      "017f22e279b07cc398c4dc0c0c07398f", "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
      "017f22e2-79b0-7cc3-98c4_dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
      " 17f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e-279b0-7cc3-98c4-dc0c0c07398f",
      "017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n", "０17f22e2-79b0-7cc3-98c4-dc0c0c0739",
    ])
  func badText(text: String) {
    #expect(Identifier(text) == nil)
  }
}
