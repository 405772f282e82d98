import CProtobufC
import CProtobufTests
import Protobuf
import Testing

typealias Kinds = ProtobufTestsV1.Kinds
typealias Leaf = ProtobufTestsV1.Leaf

@Suite struct RoundTripTests {
  /// Every field set, with values whose encodings are of all lengths.
  static let full = Kinds(
    doubleValue: -0.0, floatValue: 1.5, int32Value: -1, int64Value: .min, uint32Value: .max, uint64Value: .max,
    sint32Value: .min, sint64Value: .min, fixed32Value: 7, fixed64Value: .max, sfixed32Value: -7,
    sfixed64Value: .min, boolValue: true, stringValue: "Grüße 🙂", bytesValue: [0, 1, 255], colour: .darkBlue,
    leaf: Leaf(name: "leaf", number: 3, twig: .init(name: "twig")), doubles: [0, .infinity, -1],
    floats: [.pi], int32s: [0, -1, .max], int64s: [1, .min], uint32s: [0, 128], uint64s: [.max], sint32s: [-1, 1],
    sint64s: [-64, 64], fixed32s: [1, 2], fixed64s: [3], sfixed32s: [-1], sfixed64s: [-1], bools: [true, false],
    strings: ["", "a", String(repeating: "x", count: 300)], byteStrings: [[], [0]], colours: [.red, .negative],
    leaves: [Leaf(), Leaf(name: "b")], unpackedInt32s: [5, -5, 0], texts: ["": "empty", "k": "", "z": "v"],
    leavesByNumber: [-1: Leaf(name: "minus"), 0: Leaf()], coloursByFlag: [true: .red, false: .unspecified],
    bytesByNumber: [9: [9], 8: []], choice: .choiceLeaf(Leaf(number: -9)), maybe: .maybeNumber(0), default: "d",
    operator: 1, in: true, recipientID: "r", groupIDs: ["g", "h"], nestedLevel: .deep,
    nested: .init(level: .deep, leaf: Leaf(number: 1)), far: "far")

  @Test("Protobuf keeps every kind of field through a round trip")
  func everyKind() throws {
    let bytes = Self.full.serialized()
    #expect(bytes.count == Self.full.serializedSize)
    #expect(try Kinds(serialized: bytes) == Self.full)
    let again = try Kinds(serialized: bytes)
    #expect(again.doubleValue.sign == .minus)
  }

  @Test("Protobuf writes nothing for defaults and reads nothing as defaults")
  func defaults() throws {
    #expect(Kinds().serialized().isEmpty)
    #expect(try Kinds(serialized: []) == Kinds())
    #expect(Kinds.fullName == "protobuf.tests.v1.Kinds")
  }

  @Test("Protobuf writes what libprotobuf-c writes")
  func sameAsC() throws {
    var kinds = Self.full
    // libprotobuf-c drops a negative zero, and keys and values of a map at their defaults.
    kinds.doubleValue = -1
    kinds.texts = ["z": "v", "a": "b"]
    kinds.leavesByNumber = [-1: Leaf(name: "minus")]
    kinds.coloursByFlag = [true: .red]
    kinds.bytesByNumber = [9: [9]]
    let bytes = kinds.serialized()
    let message = try #require(protobuf__tests__v1__kinds__unpack(nil, bytes.count, bytes))
    var packed = [UInt8](repeating: 0, count: protobuf__tests__v1__kinds__get_packed_size(message))
    protobuf__tests__v1__kinds__pack(message, &packed)
    protobuf__tests__v1__kinds__free_unpacked(message, nil)
    #expect(packed == bytes)
  }

  @Test(
    "Protobuf keeps the member of a oneof, also at its default",
    arguments: [
      Kinds.Choice.choiceText(""), .choiceBytes([]), .choiceNumber(0), .choiceFlag(false),
      .choiceColour(.unspecified), .choiceLeaf(Leaf()), .choiceNothing(.init()), .choiceText("x"),
      .choiceBytes([1]), .choiceNumber(-1), .choiceFlag(true), .choiceColour(.init(rawValue: 99)),
    ])
  func oneofs(choice: Kinds.Choice) throws {
    let bytes = Kinds(choice: choice).serialized()
    #expect(!bytes.isEmpty)
    #expect(try Kinds(serialized: bytes).choice == choice)
  }

  @Test("Protobuf takes the last member of a oneof that is set twice")
  func lastOfOneof() throws {
    let bytes =
      Kinds(choice: .choiceLeaf(Leaf(name: "first"))).serialized() + Kinds(choice: .choiceText("second")).serialized()
      + Kinds(choice: .choiceNumber(3)).serialized() + Kinds(choice: .choiceText("last")).serialized()
    #expect(try Kinds(serialized: bytes).choice == .choiceText("last"))
  }

  @Test("Protobuf reads packed fields that come unpacked or in pieces")
  func packing() throws {
    // Field 23 as packed [1, 2], then 3 alone, then packed [4]; field 38 (declared unpacked) as packed [5].
    let bytes: [UInt8] = [0xBA, 0x01, 2, 1, 2, 0xB8, 0x01, 3, 0xBA, 0x01, 1, 4, 0xB2, 0x02, 1, 5]
    let kinds = try Kinds(serialized: bytes)
    #expect(kinds.int32s == [1, 2, 3, 4])
    #expect(kinds.unpackedInt32s == [5])
  }

  @Test("Protobuf gives a map's last entry and supplies left out keys and values")
  func maps() throws {
    // texts: {k: "a"}, {k: "b"}, {} and leaves_by_number: {7: nothing}.
    let bytes: [UInt8] = [
      0xCA, 0x02, 6, 0x0A, 1, 0x6B, 0x12, 1, 0x61, 0xCA, 0x02, 6, 0x0A, 1, 0x6B, 0x12, 1, 0x62, 0xCA, 0x02, 0, 0xD2,
      0x02, 2, 0x08, 7,
    ]
    let kinds = try Kinds(serialized: bytes)
    #expect(kinds.texts == ["k": "b", "": ""])
    #expect(kinds.leavesByNumber == [7: Leaf()])
  }

  @Test("Protobuf keeps the fields and enum numbers of a newer version")
  func unknown() throws {
    typealias OldKinds = ProtobufTestsV1.OldKinds
    let bytes = Self.full.serialized()
    var old = try OldKinds(serialized: bytes)
    #expect(old.int32Value == -1)
    #expect(old.stringValue == "Grüße 🙂")
    #expect(try Kinds(serialized: old.serialized()) == Self.full)
    old.unknownFields = []
    #expect(try Kinds(serialized: old.serialized()) == Kinds(int32Value: -1, stringValue: "Grüße 🙂"))
    let colour = ProtobufTestsV1.Colour(rawValue: 77)
    #expect(try Kinds(serialized: Kinds(colour: colour).serialized()).colour == colour)
    #expect(!ProtobufTestsV1.Colour.allCases.contains(colour))
  }

  @Test("Protobuf leaves room in front of a message for a frame header", arguments: [0, 1, 5])
  func reserved(prefix: Int) {
    let leaf = Leaf(name: "abc", number: 300)
    #expect(leaf.serialized(reserving: prefix) == [UInt8](repeating: 0, count: prefix) + leaf.serialized())
    #expect(Leaf().serialized(reserving: prefix).count == prefix)
  }
}
