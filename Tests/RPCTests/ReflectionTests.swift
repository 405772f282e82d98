import EventLoop
import Primitives
import Protobuf
import Testing

@testable import RPC

/// What a server tells of its protos.
@Suite struct ReflectionTests {
  /// Two files as a `FileDescriptorSet`: `part.proto`, and `notes.proto` that imports it.
  private static func fileSet() -> String {
    func message(_ fields: (UInt64, [UInt8])...) -> [UInt8] {
      var writer = DetailWriter()
      for (number, bytes) in fields { writer.bytes(number, bytes) }
      return writer.output
    }
    func text(_ text: String) -> [UInt8] { Array(text.utf8) }
    let part = message((1, text("part.proto")), (2, text("test")), (5, message((1, text("Colour")))))
    let inner = message((1, text("Inner")), (4, message((1, text("Shade")))))
    let service = message((1, text("Notes")), (2, message((1, text("Unary")))))
    let notes = message(
      (1, text("notes.proto")), (2, text("test")), (3, text("part.proto")), (4, message((1, text("Note")), (3, inner))),
      (6, service))
    return Base64.encode(message((1, part), (1, notes)), alphabet: .standard)
  }

  // "test.Notes" as the generator would have written it; equal to `fileSet`, which a test checks.
  private static let files: StaticString = """
    ChwKCnBhcnQucHJvdG8SBHRlc3QqCAoGQ29sb3VyCksKC25vdGVzLnByb3RvEgR0ZXN0GgpwYXJ0LnByb3RvIhgKBE5v\
    dGUaEAoFSW5uZXIiBwoFU2hhZGUyEAoFTm90ZXMSBwoFVW5hcnk
    """

  private struct Described: Service {
    static let descriptor = ServiceDescriptor(name: "test.Notes", methods: [TestService.unary], files: files)
    var handlers: [MethodHandler] { [CallTests.echo] }
  }

  private struct Unknown: Service {
    static let descriptor = ServiceDescriptor(name: "test.Another", methods: [])
    var handlers: [MethodHandler] { [] }
  }

  /// What the service answers: the number of the answer's field, and the texts and files in it.
  private static func answer(_ number: UInt64, _ text: String) -> (field: Int, parts: [String]) {
    var request = DetailWriter()
    request.text(1, "host")
    request.bytes(number, Array(text.utf8))
    let response = ReflectionService(services: [Described(), Unknown()]).answer(request.output)
    var result = (field: 0, parts: [String]())
    DetailReader.forEachField(response[...]) { number, field in
      guard number > 2, case .bytes(let content) = field else { return }
      result.field = number
      DetailReader.forEachField(content) { _, part in
        guard case .bytes(let bytes) = part else { return }
        var name = String(decoding: bytes, as: UTF8.self)
        // Files and services begin with their name.
        DetailReader.forEachField(bytes) { number, field in
          if number == 1, case .bytes(let text) = field { name = String(decoding: text, as: UTF8.self) }
        }
        result.parts.append(name)
      }
    }
    return result
  }

  @Test("RPC reflection's files are as written here")
  func written() { #expect("\(Self.files)" == Self.fileSet()) }

  @Test("RPC reflection lists the services")
  func list() {
    let answer = Self.answer(7, "")
    #expect(answer.field == 6)
    #expect(answer.parts == ["test.Another", "test.Notes"])
  }

  @Test(
    "RPC reflection finds files by name and by every kind of symbol, with what they import",
    arguments: [
      (3, "notes.proto", ["notes.proto", "part.proto"]), (3, "part.proto", ["part.proto"]),
      (4, "test.Notes", ["notes.proto", "part.proto"]), (4, "test.Notes.Unary", ["notes.proto", "part.proto"]),
      (4, "test.Note", ["notes.proto", "part.proto"]), (4, "test.Note.Inner", ["notes.proto", "part.proto"]),
      (4, "test.Note.Inner.Shade", ["notes.proto", "part.proto"]), (4, "test.Colour", ["part.proto"]),
    ] as [(UInt64, String, [String])])
  func find(number: UInt64, text: String, files: [String]) {
    let answer = Self.answer(number, text)
    #expect(answer.field == 4)
    #expect(answer.parts == files)
  }

  @Test(
    "RPC reflection says what it does not know",
    arguments: [(3, "other.proto"), (4, "test.Another"), (4, "Notes"), (4, ""), (5, "x"), (6, "test.Other"), (9, "x")]
      as [(UInt64, String)])
  func unknown(number: UInt64, text: String) { #expect(Self.answer(number, text).field == 7) }

  @Test("RPC reflection is served in both versions when it is switched on, and else not", arguments: [true, false])
  func served(isOn: Bool) async throws {
    let configure: (inout ServerConfiguration) -> Void = { $0.servesReflection = isOn }
    try await Rig.run([CallTests.echo], configure: configure) { rig in
      for method in ReflectionService.methods {
        let call: BidirectionalCall<Note, Note> = try await rig.channel.bidirectional(method)
        // A `Note` of one byte is the request `host: "n"`, which asks for nothing.
        let error = await failure {
          try await call.write(Note("n"))
          for try await _ in call.responses {}
        }
        // The answer is no `Note`, so that our client refuses it; an unknown method is refused by the server.
        #expect(error?.code == (isOn ? .internal : .unimplemented))
      }
    }
  }
}
