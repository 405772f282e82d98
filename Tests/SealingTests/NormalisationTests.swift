import Primitives
import Sealing
import Testing

struct NormalisationTests {
  @Test(
    "OP-10 an answer is the same however it is typed",
    arguments: [
      ("  Rex  the   Dog ", "rex the dog"), ("ＲＥＸ", "rex"), ("Straße", "strasse"), ("STRASSE", "strasse"),
      ("caf\u{E9}", "cafe\u{301}"), ("ﬁsh", "FISH"), ("a\u{A0}b", "a b"), ("a\tb\nc", "a b c"), ("a\u{200B}b", "ab"),
      ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("\u{0}x\u{0}", "x"), ("   ", ""), ("", ""),
    ])
  func answers(typed: String, meant: String) {
    let normal = Normalisation.answer(typed)
    #expect(normal == Normalisation.answer(meant))
    #expect(Normalisation.answer(normal).utf8.elementsEqual(normal.utf8))
  }

  @Test("OP-10 different answers stay different")
  func differentAnswers() {
    #expect(Normalisation.answer("rex") != Normalisation.answer("rey"))
    #expect(Normalisation.answer("re x") != Normalisation.answer("rex"))
    #expect(Normalisation.answer("café") != Normalisation.answer("cafe"))
  }

  @Test("OP-10 normalising an answer twice changes nothing, for every character of the first two planes")
  func idempotent() {
    for value in UInt32(0)..<0x20000 {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let once = Normalisation.answer("a\(Character(scalar))b")
      #expect(Normalisation.answer(once).utf8.elementsEqual(once.utf8), "U+\(String(value, radix: 16))")
    }
  }

  @Test("OP-10 a password keeps its case and its spaces")
  func passwords() {
    #expect(Normalisation.password(" Ｐass  wórd ") == " Pass  wórd ")
  }

  @Test(
    "Sealing accepts a practical address and lower-cases its domain only",
    arguments: [
      ("Ann.Lee+x@Example.COM", "Ann.Lee+x@example.com"), (" a@b.co ", "a@b.co"), ("o'neil@x-y.example", nil),
      ("a@xn--bcher-kva.example", nil), ("1@2.example", nil),
      (String(repeating: "a", count: 64) + "@example.com", nil),
    ] as [(String, String?)])
  func goodEmail(text: String, mailed: String?) {
    #expect(Normalisation.email(text) == mailed ?? text)
  }

  @Test(
    "Sealing refuses what is no practical address",
    arguments: [
      "", "@", "a", "a@", "@b.co", "a@b", "a b@c.de", "a@b@c.de", "\"a\"@b.co", "a@b..co", ".a@b.co", "a.@b.co",
      "a..b@c.de", "a@-b.co", "a@b-.co", "a@b.co.", "a@.b.co", "a@[127.0.0.1]", "a@127.0.0.1", "a\r\nBcc: x@y.zz@b.co",
      "a@b.co\r\nBcc:x", "a@b\u{0}.co", "a@b_c.co", "a,b@c.de", "<a@b.co>", "ä@b.co", "a@bücher.example", "a;b@c.de",
      "a(b)@c.de", String(repeating: "a", count: 65) + "@example.com", "a@" + String(repeating: "a", count: 64) + ".co",
      "a@" + String(repeating: "abcdefg.", count: 32) + "com",
    ])
  func badEmail(text: String) {
    #expect(Normalisation.email(text) == nil)
  }

  @Test("Sealing accepts an address of 254 bytes and none of 255")
  func emailLength() {
    let domain = String(repeating: "abcdefghi.", count: 24) + "abcdefghi.co"
    #expect(Normalisation.email("a@\(domain)")?.utf8.count == 254)
    #expect(Normalisation.email("ab@\(domain)") == nil)
  }

  @Test("Sealing takes two spellings of an address for one account")
  func emailKeys() {
    #expect(Normalisation.emailKey("Ann@Example.com") == Normalisation.emailKey(" ann@eXample.com"))
    #expect(Normalisation.emailKey("ann@example.com") != Normalisation.emailKey("anne@example.com"))
  }

  @Test("Sealing keeps a phone number in E.164's form")
  func phones() {
    #expect(Normalisation.phone("+44 (20) 7946-0958") == "+442079460958")
    #expect(Normalisation.phone("+12345678") == "+12345678")
    #expect(Normalisation.phone("+123456789012345") == "+123456789012345")
    for bad in [
      "", "+", "12345678", "+1234567", "+1234567890123456", "+01234567", "+1234567a", "+١٢٣٤٥٦٧٨", "++1234567",
    ] {
      #expect(Normalisation.phone(bad) == nil, "\(bad)")
    }
  }

  @Test("Sealing composes and trims a display name")
  func displayNames() throws {
    #expect(
      try Normalisation.displayName("  Zoe\u{308}  ", field: "name").unicodeScalars.elementsEqual("Zoë".unicodeScalars))
    #expect(try Normalisation.displayName("👩‍👩‍👧", field: "name") == "👩‍👩‍👧")
    #expect(try Normalisation.displayName(String(repeating: "é", count: 100), field: "name").count == 100)
    #expect(try Normalisation.line(" \u{200D} ", field: "title", lengths: 0...5) == "")
  }

  @Test(
    "Sealing refuses a display name that is blank, too long, or holds control or direction-changing characters",
    arguments: [
      "", "   ", "\u{200D}\u{200B}", "a\nb", "a\u{0}", "a\u{7F}b", "a\u{85}b", "a\u{2028}b", "a\u{202E}b", "a\u{2066}b",
      "a\u{200F}b", "a\u{FEFF}b", "a\u{FFFF}b", String(repeating: "a", count: 101),
      "a" + String(repeating: "\u{301}", count: 2000),
    ])
  func badDisplayNames(text: String) {
    let error = #expect(throws: ServiceError.self) { try Normalisation.displayName(text, field: "name") }
    #expect(error?.code == .invalidArgument && error?.violations.first?.field == "name")
  }

  @Test("Sealing brings a megabyte of white space to nothing")
  func megabyte() throws {
    let blank = String(repeating: " \r\n", count: 1 << 18)
    #expect(try Normalisation.paragraphs(blank, field: "body", lengths: 0...10) == "")
    #expect(try Normalisation.paragraphs(blank + "a" + blank, field: "body", lengths: 0...10) == "a")
    #expect(Normalisation.answer(blank) == "" && Normalisation.email(blank) == nil)
  }

  @Test("Sealing makes one kind of line end in text of several lines")
  func paragraphs() throws {
    #expect(try Normalisation.paragraphs("\r\na\r\nb\rc\n\td\n\n", field: "body", lengths: 1...20) == "a\nb\nc\n\td")
    #expect(throws: ServiceError.self) { try Normalisation.paragraphs("a\u{1B}[0m", field: "body", lengths: 1...20) }
    #expect(throws: ServiceError.self) { try Normalisation.paragraphs("abcd", field: "body", lengths: 1...3) }
  }
}
