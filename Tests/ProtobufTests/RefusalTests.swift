import Protobuf
import Testing

/// What `Message.init(serialized:)` refuses, and what is just inside each rule.
@Suite struct RefusalTests {
  private func rule(_ bytes: [UInt8]) -> DecodingError.Rule? {
    do {
      _ = try Kinds(serialized: bytes)
      return nil
    } catch {
      return error.rule
    }
  }

  /// `string_value` (field 14) with this content.
  private func string(_ content: [UInt8]) -> [UInt8] { [0x72, UInt8(content.count)] + content }

  @Test(
    "Protobuf takes well-formed UTF-8",
    arguments: [
      [0x41], [0x7F], [0xC2, 0x80], [0xDF, 0xBF], [0xE0, 0xA0, 0x80], [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80],
      [0xEF, 0xBF, 0xBF], [0xF0, 0x90, 0x80, 0x80], [0xF4, 0x8F, 0xBF, 0xBF], [],
    ] as [[UInt8]])
  func validText(content: [UInt8]) throws {
    for padding in 0...70 {
      let text = [UInt8](repeating: 0x61, count: padding) + content + [0x62]
      #expect(rule(string(text)) == nil)
      #expect(Array(try Kinds(serialized: string(text)).stringValue.utf8) == text)
    }
  }

  @Test(
    "Protobuf refuses invalid UTF-8 wherever it stands",
    arguments: [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x9F, 0xBF], [0xE1, 0x80],
      [0xED, 0xA0, 0x80], [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF],
      [0xF1, 0x80, 0x80], [0xF1, 0x80, 0x80, 0x41], [0xE1, 0x80, 0x41],
    ] as [[UInt8]])
  func invalidText(content: [UInt8]) {
    for padding in 0...70 {
      let front = [UInt8](repeating: 0x61, count: padding)
      #expect(rule(string(front + content)) == .invalidUTF8)
      #expect(rule(string(front + content + [0x62])) == .invalidUTF8)
    }
  }

  @Test("Protobuf refuses a NUL in a string wherever it stands, and takes it in bytes")
  func embeddedNUL() {
    for length in 1...70 {
      for place in 0..<length {
        var content = [UInt8](repeating: 0x61, count: length)
        content[place] = 0
        #expect(rule(string(content)) == .embeddedNUL)
        #expect(rule([0x7A, UInt8(length)] + content) == nil)
      }
    }
  }

  @Test("Protobuf checks strings in lists, maps, oneofs and nested messages")
  func everyString() {
    let bad: [UInt8] = [1, 0]
    let places: [[UInt8]] = [
      [0x92, 0x02] + bad,  // strings
      [0xCA, 0x02, 3, 0x0A] + bad, [0xCA, 0x02, 3, 0x12] + bad,  // texts, key and value
      [0x9A, 0x03] + bad,  // choice_text
      [0x8A, 0x01, 3, 0x0A] + bad, [0x8A, 0x01, 5, 0x1A, 3, 0x0A] + bad,  // leaf.name, leaf.twig.name
      [0xAA, 0x02, 3, 0x0A] + bad,  // leaves
      [0xD2, 0x02, 5, 0x12, 3, 0x0A] + bad,  // leaves_by_number
    ]
    for place in places { #expect(rule(place) == .embeddedNUL) }
  }

  @Test("Protobuf refuses a message field that appears twice")
  func repeatedMessage() {
    let leaf = Kinds(leaf: Leaf(name: "a")).serialized()
    #expect(rule(leaf) == nil)
    #expect(rule(leaf + leaf) == .repeatedMessage)
    let choice = Kinds(choice: .choiceLeaf(Leaf(name: "a"))).serialized()
    #expect(rule(choice + choice) == .repeatedMessage)
    #expect(rule(leaf + choice) == nil)
    // leaf.twig twice in one leaf; and once in each of two leaves of a list.
    #expect(rule([0x8A, 0x01, 4, 0x1A, 0, 0x1A, 0]) == .repeatedMessage)
    #expect(rule([0xAA, 0x02, 2, 0x1A, 0, 0xAA, 0x02, 2, 0x1A, 0]) == nil)
    // Scalars may: the last one counts.
    #expect(rule([0x18, 1, 0x18, 2]) == nil)
  }

  @Test("Protobuf takes numbers of ten bytes and refuses longer ones")
  func varints() {
    let nine = [UInt8](repeating: 0xFF, count: 9)
    #expect(rule([0x20] + nine + [0x01]) == nil)
    #expect(rule([0x20] + nine + [0x02]) == .overlongVarint)
    #expect(rule([0x20] + nine + [0x81, 0x00]) == .overlongVarint)
    #expect(rule([0x20] + nine) == .truncated)
    // Packed, as a length, as a tag.
    #expect(rule([0xC2, 0x01, 10] + nine + [0x01]) == nil)
    #expect(rule([0xC2, 0x01, 10] + nine + [0x02]) == .overlongVarint)
    #expect(rule([0xC2, 0x01, 9] + nine) == .truncated)
    #expect(rule([0x72, 0x81, 0x80, 0x80, 0x80, 0x00, 0x61]) == nil)
    #expect(rule([0x72, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00, 0x61]) == .overlongVarint)
    #expect(rule([0xF2, 0x80, 0x80, 0x80, 0x00, 0x00]) == nil)
    #expect(rule([0xF2, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00]) == .overlongVarint)
  }

  @Test("Protobuf refuses field number 0, field numbers past 2^29 - 1, groups and unknown wire types")
  func tags() {
    #expect(rule([0x00, 0x00]) == .invalidTag)
    #expect(rule([0x07]) == .invalidTag)
    #expect(rule([0xFA, 0xFF, 0xFF, 0xFF, 0x0F, 0]) == nil)
    #expect(rule([0xFA, 0xFF, 0xFF, 0xFF, 0x1F, 0]) == .invalidTag)
    for wireType: UInt8 in [3, 4, 6, 7] { #expect(rule([0x18 | wireType, 0]) == .unsupportedWireType) }
    // The same in a field that nobody knows (number 99).
    for wireType: UInt8 in [3, 4, 6, 7] { #expect(rule([0x98 | wireType, 0x06, 0]) == .unsupportedWireType) }
  }

  @Test("Protobuf refuses a known field of another wire type, and keeps an unknown one of any")
  func wireTypes() {
    #expect(rule([0x1A, 1, 1]) == .wrongWireType)
    #expect(rule([0x1D, 0, 0, 0, 0]) == .wrongWireType)
    #expect(rule([0x6A, 1, 1]) == .wrongWireType)
    #expect(rule([0x70, 1]) == .wrongWireType)
    #expect(rule([0x88, 0x01, 1]) == .wrongWireType)
    #expect(rule([0xA8, 0x02, 1]) == .wrongWireType)
    let unknown: [[UInt8]] = [
      [0x98, 6, 1], [0x99, 6, 1, 2, 3, 4, 5, 6, 7, 8], [0x9A, 6, 1, 0], [0x9D, 6, 1, 2, 3, 4],
    ]
    for field in unknown { #expect(rule(field) == nil) }
  }

  @Test("Protobuf refuses every message that is cut short inside a field")
  func truncation() throws {
    let whole = RoundTripTests.full.serialized()
    var refused = 0
    for length in 0..<whole.count {
      guard let rule = rule(Array(whole[..<length])) else { continue }
      #expect(rule == .truncated)
      refused += 1
    }
    #expect(refused > whole.count * 3 / 4)
    #expect(rule([0xB2, 0x01, 3, 0, 0, 0]) == .truncated)
    #expect(rule([0x72, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]) == .truncated)
  }

  @Test("Protobuf bounds the memory of a message by its size")
  func budget() {
    func empties(_ count: Int) -> [UInt8] {
      (0..<count).flatMap { _ -> [UInt8] in [0xAA, 0x02, 0] }
    }
    #expect(rule(empties(400)) == nil)
    #expect(rule(empties(10_000)) == .budgetExceeded)
    // The thread's arena is as good as new afterwards, and beyond its first block too.
    #expect(rule(empties(400)) == nil)
    let large = Kinds(bytesValue: [UInt8](repeating: 7, count: 3 << 20), leaves: [Leaf(name: "after")])
    #expect(rule(large.serialized()) == nil)
    #expect(rule(RoundTripTests.full.serialized()) == nil)
  }

  @Test("Protobuf takes a page of a thousand small messages")
  func page() throws {
    let kinds = Kinds(leaves: (0..<1000).map { Leaf(name: "leaf \($0)", number: $0, twig: .init(name: "twig")) })
    #expect(try Kinds(serialized: kinds.serialized()) == kinds)
  }

  @Test("Protobuf errors name the message and the field, and nothing of the content")
  func errors() {
    #expect(throws: DecodingError(.embeddedNUL, message: "protobuf.tests.v1.Twig", field: "name")) {
      try Kinds(serialized: [0x8A, 0x01, 5, 0x1A, 3, 0x0A, 1, 0])
    }
    let error = DecodingError(.embeddedNUL, message: "a.B", field: "c")
    #expect(error.description == "a.B.c holds a NUL character")
  }
}
