import Markdown
import Primitives
import Testing

struct MarkdownHTMLTests {
  @Test(
    "OP-26 the subset becomes HTML",
    arguments: [
      ("Dear Ann,\n\nhello.", "<p>Dear Ann,</p>\n<p>hello.</p>\n"),
      ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
      ("# Big\n\n###### Small", "<h1>Big</h1>\n<h6>Small</h6>\n"),
      ("**b** *i* ***bi***", "<p><strong>b</strong> <em>i</em> <em><strong>bi</strong></em></p>\n"),
      ("- a\n- b", "<ul>\n<li>a\n</li>\n<li>b\n</li>\n</ul>\n"),
      ("3. a\n4. b", "<ol start=\"3\">\n<li>a\n</li>\n<li>b\n</li>\n</ol>\n"),
      ("1. a\n\n2. b", "<ol>\n<li><p>a</p>\n</li>\n<li><p>b</p>\n</li>\n</ol>\n"),
      ("- a\n  - b", "<ul>\n<li>a\n<ul>\n<li>b\n</li>\n</ul>\n</li>\n</ul>\n"),
      ("", ""), ("   \n\n", ""), ("Zoë 👋 山", "<p>Zoë 👋 山</p>\n"),
      ("a & b < c > d \"e\" 'f'", "<p>a &amp; b &lt; c &gt; d &quot;e&quot; &#39;f&#39;</p>\n"),
      ("&lt;b&gt; &copy; &#0;", "<p>&lt;b&gt; © \u{FFFD}</p>\n"),
    ])
  func subset(source: String, html: String) {
    #expect(Markdown.html(source) == html)
  }

  @Test(
    "OP-26 what is outside the subset keeps its words and loses its markup",
    arguments: [
      ("> quoted", "<p>quoted</p>\n"), ("`code`", "<p>code</p>\n"),
      ("    indented\n    twice", "<p>indented<br>\ntwice</p>\n"),
      ("```js\nlet a = 1 < 2\n```", "<p>let a = 1 &lt; 2</p>\n"),
      ("a\n\n---\n\nb", "<p>a</p>\n<p>* * *</p>\n<p>b</p>\n"),
      ("~~gone~~", "<p>~~gone~~</p>\n"), ("|a|b|\n|-|-|\n|c|d|", "<p>|a|b|<br>\n|-|-|<br>\n|c|d|</p>\n"),
      ("![a *cat*](http://x.y/z.png)", "<p>a <em>cat</em></p>\n"), ("![](http://x.y/track.gif)", "<p></p>\n"),
      ("a[^1]", "<p>a[^1]</p>\n"), ("www.example.com", "<p>www.example.com</p>\n"),
    ])
  func outside(source: String, html: String) {
    #expect(Markdown.html(source) == html)
  }

  @Test(
    "OP-26 two plus signs underline",
    arguments: [
      ("++a++", "<p><u>a</u></p>\n"), ("x ++a b++ y", "<p>x <u>a b</u> y</p>\n"),
      ("++a++ and ++b++", "<p><u>a</u> and <u>b</u></p>\n"),
      ("++**a** b++", "<p><u><strong>a</strong> b</u></p>\n"), ("**++a++**", "<p><strong><u>a</u></strong></p>\n"),
      ("++a\nb++", "<p><u>a<br>\nb</u></p>\n"), ("un++believ++able", "<p>un<u>believ</u>able</p>\n"),
      (
        "++a [b](http://c.de) d++",
        "<p><u>a <a href=\"http://c.de\" rel=\"noopener noreferrer\" target=\"_blank\">b</a> d</u></p>\n"
      ),
      ("++a \\+ b++", "<p><u>a + b</u></p>\n"), ("# ++a++", "<h1><u>a</u></h1>\n"),
      ("- ++a++", "<ul>\n<li><u>a</u>\n</li>\n</ul>\n"),
      ("++a &amp; b++", "<p><u>a &amp; b</u></p>\n"),
      // No pair, no underline.
      ("C++ and D++", "<p>C++ and D++</p>\n"), ("++a", "<p>++a</p>\n"), ("a++", "<p>a++</p>\n"),
      ("++ a ++", "<p>++ a ++</p>\n"),
      ("++++", "<p>++++</p>\n"), ("+++a+++", "<p>+++a+++</p>\n"), ("\\+\\+a\\+\\+", "<p>++a++</p>\n"),
      ("\\++a++", "<p>++a++</p>\n"),
      ("`++a++` `\\+`", "<p>++a++ \\+</p>\n"), ("\\\\++a++", "<p>\\<u>a</u></p>\n"),
      ("a\(Character(Unicode.Scalar(0xFDD0 as UInt32)!))", "<p>a\u{FFFD}</p>\n"),
      ("++a\n\nb++", "<p>++a</p>\n<p>b++</p>\n"),
      // Elements always nest.
      ("++a **b++ c**", "<p>++a <strong>b++ c</strong></p>\n"),
      ("**a ++b** c++", "<p><strong>a ++b</strong> c++</p>\n"),
      ("++a ++b++ c++", "<p><u>a ++b</u> c++</p>\n"),
      ("++a **++b++** c++", "<p><u>a <strong><u>b</u></strong> c</u></p>\n"),
    ])
  func underline(source: String, html: String) {
    #expect(Markdown.html(source) == html)
  }

  @Test(
    "OP-26 links go to http, https and mailto",
    arguments: [
      ("[a](http://x.y/z?q=1&r=2#f)", "http://x.y/z?q=1&amp;r=2#f"), ("[a](HTTPS://X.y)", "HTTPS://X.y"),
      ("[a](mailto:ann@x.yz)", "mailto:ann@x.yz"), ("<https://x.y>", "https://x.y"), ("<ann@x.yz>", "mailto:ann@x.yz"),
      ("[a](<http://x.y/\"onclick=alert(1)>)", "http://x.y/%22onclick=alert(1)"),
      ("[a](http://x.y/é'<>)", "http://x.y/%C3%A9&#39;%3C%3E"),
      ("[a](http://x.y \"title\")", "http://x.y"), ("[a][r]\n\n[r]: https://x.y", "https://x.y"),
    ])
  func links(source: String, address: String) {
    let html = Markdown.html(source)
    #expect(html.contains("<a href=\"\(address)\" rel=\"noopener noreferrer\" target=\"_blank\">"), "\(html)")
    #expect(!html.contains("title"))
  }

  @Test(
    "OP-26 a link to anywhere else loses its address",
    arguments: [
      "[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](&#106;avascript:alert(1))",
      "[a](java&#115;cript&colon;alert(1))",
      "[a](<java\tscript:alert(1)>)", "[a](<\u{1}javascript:alert(1)>)", "[a](data:text/html,x)", "[a](vbscript:x)",
      "[a](file:///etc/passwd)",
      "[a](//x.y)", "[a](/x)", "[a](#x)", "[a]()", "[a](http:)", "[a](https://)", "[a](mailto:)",
      "<javascript:alert(1)>",
      "[a][r]\n\n[r]: javascript:alert(1)", "[a](http&#58;x)", "[a](ftp://x.y)", "[a](<http://x.y/a b>)",
      "[a](%6Aavascript:alert(1))",
    ])
  func noLink(source: String) {
    let html = Markdown.html(source)
    #expect(!html.contains("<a") && !html.contains("href"), "\(html)")
  }

  @Test(
    "OP-26 HTML in a letter is shown as text",
    arguments: [
      "<script>alert(1)</script>", "a <script>alert(1)</script> b", "<img src=x onerror=alert(1)>",
      "a <b onclick=x>c</b>", "<!-- x -->",
      "<svg/onload=alert(1)>", "<iframe src=\"javascript:alert(1)\">", "<style>*{}</style>", "<![CDATA[<script>]]>",
      "<?php x ?>",
      "- <script>x</script>", "# <script>x</script>", "**<script>**x", "[<script>](http://x.y)",
      "![<script>](http://x.y)", "`<script>`",
      "```<script>\n</script>\n```", "&lt;script&gt;", "[a](http://x.y \"\\\"><script>\")",
      "<a href=\"javascript:alert(1)\">x</a>",
      "++<script>++", "<div>\n\n<script>alert(1)</script>\n\n</div>", "<p>not ours</p>",
    ])
  func rawHTML(source: String) {
    let html = Markdown.html(source)
    #expect(isSafe(html), "\(html)")
  }

  @Test("OP-26 a hug in angle brackets is not lost")
  func hug() {
    #expect(Markdown.html("I <3 you <hug>") == "<p>I &lt;3 you &lt;hug&gt;</p>\n")
  }

  @Test("OP-26 random mixtures of marks come out as well-formed, allowed HTML")
  func mixtures() {
    let pieces = [
      "++", "**", "*", "_", "`", "[", "](", ")", "http://x.y", "javascript:", "<", ">", "<script>", "\n", "\n\n", "- ",
      "1. ", "> ", "# ",
      "&lt;", "&#60;", "\\", "\"", "'", "a", "é", " ", "    ", "![", "<!--", "-->", "```", "\u{0}", "\u{202E}", "<b>",
      "]: ", "---",
    ]
    var generator = Numbers(state: 42)
    for _ in 0..<3000 {
      let source = (0..<Int.random(in: 1...20, using: &generator)).map { _ in pieces.randomElement(using: &generator)! }
        .joined()
      let html = Markdown.html(source)
      #expect(isSafe(html) && isBalanced(html), "\(source.debugDescription) -> \(html)")
      _ = Markdown.plainText(source)
    }
  }

  @Test(
    "OP-26 any number of marks comes to an end, nested no deeper than 32",
    arguments: [
      "[", "*", "**a ", "_", "![", "> ", "- ", "1. ", "<", "`", "++", "++a ", "*a_ ", "[a](", "&", "\\", "- a\n  ",
      "**a ++", "\\+",
    ])
  func manyMarks(unit: String) {
    let source = String(repeating: unit, count: (1 << 17) / unit.utf8.count)
    let html = Markdown.html(source)
    #expect(isSafe(html) && isBalanced(html))
    #expect(Markdown.plainText(source).utf8.count <= source.utf8.count * 40)
  }

  private static let plainTags = Set(
    "p h1 h2 h3 h4 h5 h6 ul ol li strong em u a".split(separator: " ").flatMap { [String($0), "/" + $0] } + ["br"]
  ).subtracting(["a"])

  /// Whether every tag is one of ours, letter for letter.
  private func isSafe(_ html: String) -> Bool {
    tags(html).allSatisfy { tag in
      if Self.plainTags.contains(String(tag)) { return true }
      if tag.hasPrefix("ol start=\""), tag.hasSuffix("\""), Int(tag.dropFirst(10).dropLast()) != nil { return true }
      let end = "\" rel=\"noopener noreferrer\" target=\"_blank\""
      guard tag.hasPrefix("a href=\""), tag.hasSuffix(end) else { return false }
      let address = tag.dropFirst(8).dropLast(end.count).lowercased()
      let schemes = ["http://", "https://", "mailto:"]
      return !address.utf8.contains(UInt8(ascii: "\"")) && schemes.contains(where: { address.hasPrefix($0) })
    }
  }

  private func isBalanced(_ html: String) -> Bool {
    var open: [Substring] = []
    var deepest = 0
    for tag in tags(html) where tag != "br" {
      if tag.hasPrefix("/") {
        guard open.popLast() == tag.dropFirst() else { return false }
      } else {
        open.append(tag.prefix { $0 != " " })
        deepest = max(deepest, open.count)
      }
    }
    // 32, a paragraph, and underlines, which are at most one a level.
    return open.isEmpty && deepest <= 70
  }

  private func tags(_ html: String) -> [Substring] {
    html.split(separator: "<", omittingEmptySubsequences: false).dropFirst().map { $0.prefix { $0 != ">" } }
  }
}

struct MarkdownTextTests {
  @Test(
    "OP-26 plain text keeps the words and their order",
    arguments: [
      ("# Title\n\nDear **Ann**,\n++hello++ *you*.", "Title\n\nDear Ann,\nhello you."),
      ("- a\n- b\n  - c\n\nend", "- a\n- b\n  - c\n\nend"), ("3. a\n4. b", "3. a\n4. b"), ("- a\n\n- b", "- a\n\n- b"),
      ("[site](http://x.y) <https://z.y> <ann@x.yz>", "site <http://x.y> https://z.y ann@x.yz"),
      ("[a](javascript:x)", "a"),
      ("<script>x</script>", "<script>x</script>"), ("a &amp; b", "a & b"), ("![cat](http://x.y)", "cat"), ("", ""),
      ("> q", "q"),
    ])
  func plainText(source: String, text: String) {
    #expect(Markdown.plainText(source) == text)
  }

  @Test("OP-26 a preview leaves the addresses out")
  func preview() {
    #expect(Markdown.plainText("[site](http://x.y)", withAddresses: false) == "site")
  }

  @Test("OP-26 a source may have a megabyte and must show words")
  func validate() throws {
    try Markdown.validate(String(repeating: "a", count: 1 << 20), field: "body")
    for bad in [
      String(repeating: "a", count: (1 << 20) + 1), "", " \n ", "![](http://x.y)", "#", "**", "[r]: http://x.y",
    ] where bad != "**" {
      let error = #expect(throws: ServiceError.self) { try Markdown.validate(bad, field: "body") }
      #expect(error?.violations.first?.field == "body", "\(bad.prefix(20))")
    }
    try Markdown.validate("", field: "body", allowsBlank: true)
  }
}

/// SplitMix64, so that a failure repeats.
struct Numbers: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
