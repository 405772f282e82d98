import Foundation
import Primitives
import Testing

struct EncodingTests {
  @Test("Primitives hexadecimal reads back what it writes, in either case, and nothing else")
  func hex() {
    let all = (UInt8.min...UInt8.max).map { $0 }
    #expect(Hex.decode(Hex.encode(all)) == all)
    #expect(Hex.decode(Hex.encode(all).uppercased()) == all)
    #expect(Hex.encode([0x00, 0x0F, 0xA0, 0xFF]) == "000fa0ff")
    #expect(Hex.encode([]) == "" && Hex.decode("") == [])
    for bad in ["0", "0g", "0x", " 00", "00 ", "é0", "-1"] { #expect(Hex.decode(bad) == nil, "\(bad)") }
  }

  @Test(
    "Primitives Base64 gives RFC 4648's own examples",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func base64(plain: String, encoded: String) {
    #expect(Base64.encode(plain.utf8, alphabet: .standard, padding: true) == encoded)
    #expect(Base64.encode(plain.utf8) == encoded.filter { $0 != "=" })
    #expect(Base64.decode(encoded) == Array(plain.utf8))
    #expect(Base64.decode(encoded.filter { $0 != "=" }) == Array(plain.utf8))
  }

  @Test("Primitives Base64 agrees with Foundation on random bytes of every length to 200")
  func differential() {
    for length in 0...200 {
      let bytes = (0..<length).map { _ in UInt8.random(in: 0...255) }
      let expected = Data(bytes).base64EncodedString()
      #expect(Base64.encode(bytes, alphabet: .standard, padding: true) == expected)
      #expect(Base64.decode(expected) == bytes)
      #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    }
  }

  @Test(
    "Primitives Base64 refuses stray characters, misplaced pads and stray bits",
    arguments: [
      "A", "AAAAA", "Zg=", "Zg===", "Z===", "=", "==", "====", "Zm9v=", "Zm9v====", "Zg==Zg==", "Z=g=", "Zh==", "Zm9=",
      "Zm-9 ",
      "Zm9v\n", "Zm9\u{0}", "Zm9é", "Z,9v",
    ])
  func badBase64(text: String) {
    #expect(Base64.decode(text) == nil)
  }

  @Test("Primitives JSON strings read back in Foundation, whatever they hold")
  func json() throws {
    let texts = [
      "", "plain", "\"quoted\" \\ back", "line\nfeed\r\ttab", "\u{0}\u{1}\u{1F}\u{7F}", "é 山 👋 \u{2028}", "</script>",
      "\"},\"level\":\"error",
    ]
    for text in texts {
      var output: [UInt8] = []
      JSONText.append(text, to: &output)
      #expect(output.allSatisfy { $0 >= 0x20 })
      #expect(try JSONDecoder().decode([String].self, from: Data("[".utf8 + output + "]".utf8)) == [text])
    }
  }
}
