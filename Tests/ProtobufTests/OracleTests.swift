import Foundation
import Primitives
import Protobuf
import Testing

/// The codec against PyPI's protobuf, on random messages and on damaged ones.
@Suite struct OracleTests {
  private static let python = ProcessInfo.processInfo.environment["AFTERTHOUGHTS_PYTHON"]
  /// As Tests/Conformance/test_codec.py has it.
  private static let count =
    ProcessInfo.processInfo.environment["AFTERTHOUGHTS_CODEC_MESSAGES"].flatMap { Int($0) } ?? 2000

  @Test(
    "Protobuf reads and writes as PyPI's protobuf does",
    .enabled(if: python != nil, "AFTERTHOUGHTS_PYTHON must name a Python that has protobuf and grpcio-tools"))
  func differential() throws {
    let script = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../CProtobufTests/oracle.py")
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: try #require(Self.python))
    process.arguments = [script.path, "20260801", "\(Self.count)"]
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    var whole = 0
    var accepted = 0
    var refused = 0
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ")
      let hex = try #require(parts.dropLast().last)
      let expected = String(try #require(parts.last))
      let bytes = hex == "-" ? [] : try #require(Hex.decode(hex))
      if parts.count == 2 {
        let kinds = try Kinds(serialized: bytes)
        try #require(holds(kinds) == expected)
        try #require(holds(try Kinds(serialized: kinds.serialized())) == expected)
        // PyPI orders the entries of a map in its own way.
        try #require(kinds.hasMaps ? kinds.serializedSize == bytes.count : kinds.serialized() == bytes)
        whole += 1
      } else if expected == "differs" {
        continue
      } else if let kinds = try? Kinds(serialized: bytes) {
        // We refuse more than PyPI does, never less, and what both take means the same.
        try #require(holds(kinds) == expected, "damaged \(hex)")
        try #require(holds(try Kinds(serialized: kinds.serialized())) == expected)
        accepted += 1
      } else {
        refused += 1
      }
    }
    #expect(whole == Self.count)
    #expect(accepted > Self.count / 10)
    #expect(refused > Self.count / 10)
  }
}

extension Kinds {
  fileprivate var hasMaps: Bool {
    !texts.isEmpty || !leavesByNumber.isEmpty || !coloursByFlag.isEmpty || !bytesByNumber.isEmpty
  }
}

// MARK: the notation of oracle.py

/// Fields that are set, by number.
private struct Notation {
  private var parts: [String] = []
  var text: String { "{" + parts.joined(separator: ";") + "}" }

  mutating func add(_ name: String, _ value: String?) {
    if let value { parts.append("\(name)=\(value)") }
  }
}

private func number<N: BinaryInteger>(_ value: N) -> String? { value == 0 ? nil : "\(value)" }
private func text(_ value: String) -> String? { value.isEmpty ? nil : Hex.encode(Array(value.utf8)) }
private func bytes(_ value: [UInt8]) -> String? { value.isEmpty ? nil : Hex.encode(value) }
private func list<Value>(_ values: [Value], _ show: (Value) -> String) -> String? {
  values.isEmpty ? nil : "[" + values.map(show).joined(separator: ",") + "]"
}

private func padded(_ bits: UInt64, _ digits: Int) -> String {
  let hex = String(bits, radix: 16)
  return String(repeating: "0", count: digits - hex.count) + hex
}

private func double(_ value: Double) -> String { value.isNaN ? "nan" : padded(value.bitPattern, 16) }
private func float(_ value: Float) -> String { value.isNaN ? "nan" : padded(UInt64(value.bitPattern), 8) }
private func hex(_ value: String) -> String { text(value) ?? "" }
private func hex(_ value: [UInt8]) -> String { bytes(value) ?? "" }

private func map<Key, Value>(_ entries: [Key: Value], _ show: (Key, Value) -> String) -> String? {
  let shown = entries.map(show).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  return shown.isEmpty ? nil : "[" + shown.joined(separator: ",") + "]"
}

private func holds(_ leaf: Leaf) -> String {
  var notation = Notation()
  notation.add("name", text(leaf.name))
  notation.add("number", number(leaf.number))
  notation.add(
    "twig",
    leaf.twig.map { twig in
      var notation = Notation()
      notation.add("name", text(twig.name))
      return notation.text
    })
  return notation.text
}

private func holds(_ kinds: Kinds) -> String {
  var notation = Notation()
  addScalars(kinds, to: &notation)
  addLists(kinds, to: &notation)
  notation.add("texts", map(kinds.texts) { "\(hex($0)):\(hex($1))" })
  notation.add("leaves_by_number", map(kinds.leavesByNumber) { "\($0):\(holds($1))" })
  notation.add("colours_by_flag", map(kinds.coloursByFlag) { "\($0):\($1.rawValue)" })
  notation.add("bytes_by_number", map(kinds.bytesByNumber) { "\($0):\(hex($1))" })
  switch kinds.choice {
  case nil: break
  case .choiceText(let value): notation.add("choice_text", hex(value))
  case .choiceBytes(let value): notation.add("choice_bytes", hex(value))
  case .choiceNumber(let value): notation.add("choice_number", "\(value)")
  case .choiceFlag(let value): notation.add("choice_flag", "\(value)")
  case .choiceColour(let value): notation.add("choice_colour", "\(value.rawValue)")
  case .choiceLeaf(let value): notation.add("choice_leaf", holds(value))
  case .choiceNothing: notation.add("choice_nothing", "{}")
  }
  if case .maybeNumber(let value) = kinds.maybe { notation.add("maybe_number", "\(value)") }
  notation.add("default", text(kinds.default))
  notation.add("operator", number(kinds.operator))
  notation.add("in", kinds.in ? "true" : nil)
  notation.add("recipient_id", text(kinds.recipientID))
  notation.add("group_ids", list(kinds.groupIDs, hex))
  notation.add("nested_level", number(kinds.nestedLevel.rawValue))
  notation.add(
    "nested",
    kinds.nested.map { nested in
      var notation = Notation()
      notation.add("level", number(nested.level.rawValue))
      notation.add("leaf", nested.leaf.map(holds))
      return notation.text
    })
  notation.add("far", text(kinds.far))
  return notation.text
}

private func addScalars(_ kinds: Kinds, to notation: inout Notation) {
  notation.add("double_value", kinds.doubleValue.bitPattern == 0 ? nil : double(kinds.doubleValue))
  notation.add("float_value", kinds.floatValue.bitPattern == 0 ? nil : float(kinds.floatValue))
  notation.add("int32_value", number(kinds.int32Value))
  notation.add("int64_value", number(kinds.int64Value))
  notation.add("uint32_value", number(kinds.uint32Value))
  notation.add("uint64_value", number(kinds.uint64Value))
  notation.add("sint32_value", number(kinds.sint32Value))
  notation.add("sint64_value", number(kinds.sint64Value))
  notation.add("fixed32_value", number(kinds.fixed32Value))
  notation.add("fixed64_value", number(kinds.fixed64Value))
  notation.add("sfixed32_value", number(kinds.sfixed32Value))
  notation.add("sfixed64_value", number(kinds.sfixed64Value))
  notation.add("bool_value", kinds.boolValue ? "true" : nil)
  notation.add("string_value", text(kinds.stringValue))
  notation.add("bytes_value", bytes(kinds.bytesValue))
  notation.add("colour", number(kinds.colour.rawValue))
  notation.add("leaf", kinds.leaf.map(holds))
}

private func addLists(_ kinds: Kinds, to notation: inout Notation) {
  notation.add("doubles", list(kinds.doubles, double))
  notation.add("floats", list(kinds.floats, float))
  notation.add("int32s", list(kinds.int32s) { "\($0)" })
  notation.add("int64s", list(kinds.int64s) { "\($0)" })
  notation.add("uint32s", list(kinds.uint32s) { "\($0)" })
  notation.add("uint64s", list(kinds.uint64s) { "\($0)" })
  notation.add("sint32s", list(kinds.sint32s) { "\($0)" })
  notation.add("sint64s", list(kinds.sint64s) { "\($0)" })
  notation.add("fixed32s", list(kinds.fixed32s) { "\($0)" })
  notation.add("fixed64s", list(kinds.fixed64s) { "\($0)" })
  notation.add("sfixed32s", list(kinds.sfixed32s) { "\($0)" })
  notation.add("sfixed64s", list(kinds.sfixed64s) { "\($0)" })
  notation.add("bools", list(kinds.bools) { "\($0)" })
  notation.add("strings", list(kinds.strings, hex))
  notation.add("byte_strings", list(kinds.byteStrings, hex))
  notation.add("colours", list(kinds.colours) { "\($0.rawValue)" })
  notation.add("leaves", list(kinds.leaves, holds))
  notation.add("unpacked_int32s", list(kinds.unpackedInt32s) { "\($0)" })
}
