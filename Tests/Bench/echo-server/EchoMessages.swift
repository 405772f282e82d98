package import Protobuf

/// `echo.EchoMsg { bytes payload = 1; }`, by hand, so that the bench needs no generated code.
package struct EchoMsg: Message {
  package static var fullName: String { "echo.EchoMsg" }
  package var payload: [UInt8] = []

  package init() {}

  package init(serialized bytes: UnsafeRawBufferPointer) throws(DecodingError) {
    var position = 0
    while position < bytes.count {
      let tag = try Self.varint(bytes, &position)
      switch tag & 7 {
      case 0: _ = try Self.varint(bytes, &position)
      case 2:
        let length = try Self.varint(bytes, &position)
        guard length <= UInt64(bytes.count - position) else {
          throw DecodingError(.truncated, message: Self.fullName)
        }
        let end = position + Int(length)
        if tag >> 3 == 1 { payload = Array(bytes[position..<end]) }
        position = end
      default: throw DecodingError(.unsupportedWireType, message: Self.fullName)
      }
    }
  }

  private static func varint(_ bytes: UnsafeRawBufferPointer, _ position: inout Int) throws(DecodingError) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard position < bytes.count else { throw DecodingError(.truncated, message: fullName) }
      let byte = bytes[position]
      position += 1
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
    }
    throw DecodingError(.overlongVarint, message: fullName)
  }

  package var serializedSize: Int { WireSize.field(1, WireBytes.self, payload) }

  package func write(to writer: inout WireWriter) { writer.field(1, WireBytes.self, payload) }
}

/// `echo.UploadSummary { int64 messages = 1; int64 bytes = 2; }`; only ever sent.
package struct UploadSummary: Message {
  package static var fullName: String { "echo.UploadSummary" }
  package var messages: Int64 = 0
  package var bytes: Int64 = 0

  package init() {}

  package init(serialized bytes: UnsafeRawBufferPointer) throws(DecodingError) {
    throw DecodingError(.refused, message: Self.fullName)
  }

  package var serializedSize: Int {
    WireSize.field(1, WireInt64.self, messages) + WireSize.field(2, WireInt64.self, bytes)
  }

  package func write(to writer: inout WireWriter) {
    writer.field(1, WireInt64.self, messages)
    writer.field(2, WireInt64.self, bytes)
  }
}
