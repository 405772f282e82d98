import Protobuf

/// The message of these tests: `message Note { bytes body = 1; }`, by hand.
struct Note: Message {
  static var fullName: String { "test.Note" }
  var body: [UInt8] = []

  init() {}

  init(_ text: String) { body = Array(text.utf8) }

  init(size: Int) { body = Array(repeating: 7, count: size) }

  var text: String { String(decoding: body, as: UTF8.self) }

  init(serialized bytes: UnsafeRawBufferPointer) throws(DecodingError) {
    guard !bytes.isEmpty else { return }
    guard bytes[0] == 10 else { throw DecodingError(.wrongWireType, message: Self.fullName) }
    var position = 1
    var length = 0
    var shift = 0
    while true {
      guard position < bytes.count, shift < 35 else { throw DecodingError(.truncated, message: Self.fullName) }
      let byte = bytes[position]
      position += 1
      length |= Int(byte & 0x7F) << shift
      shift += 7
      if byte < 0x80 { break }
    }
    guard length == bytes.count - position else { throw DecodingError(.truncated, message: Self.fullName) }
    body = Array(bytes[position...])
  }

  var serializedSize: Int { WireSize.field(1, WireBytes.self, body) }

  func write(to writer: inout WireWriter) { writer.field(1, WireBytes.self, body) }
}
