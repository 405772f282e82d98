/// Swift source under construction, indented by two spaces for each level.
struct SourceText {
  private(set) var text = ""
  private var level = 0

  mutating func line(_ line: String = "") {
    text += line.isEmpty ? "\n" : String(repeating: "  ", count: level) + line + "\n"
  }

  /// A line that ends in a brace, what is inside, and the closing brace.
  mutating func block(_ head: String, _ body: (inout SourceText) -> Void) {
    line(head + " {")
    level += 1
    body(&self)
    level -= 1
    line("}")
  }

  /// Lines one level deeper.
  mutating func indented(_ lines: [String]) {
    level += 1
    for each in lines { line(each) }
    level -= 1
  }

  /// A documentation comment, wrapped at 120 columns.
  mutating func comment(_ lines: [String]) {
    let width = 120 - 2 * level - 4
    for each in lines {
      var rest = each[...]
      while rest.count > width, let space = rest.prefix(width + 1).lastIndex(of: " ") {
        line("/// " + rest[..<space])
        rest = rest[rest.index(after: space)...]
      }
      line(rest.isEmpty ? "///" : "/// " + rest)
    }
  }
}
