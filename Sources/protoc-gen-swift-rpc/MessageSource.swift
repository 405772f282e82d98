// Emits a message: the struct, and its conformance to `Message` in an extension.

struct MessageSource {
  private let message: MessageType
  private let types: Types
  private let fields: [FieldForm]
  private var swiftName: String { types.swiftName(message.fullName) }

  init(_ message: MessageType, _ types: Types) {
    self.message = message
    self.types = types
    fields = message.fields.map { FieldForm($0, types) }
  }

  // MARK: the struct

  func declare(in source: inout SourceText) {
    source.comment(message.comment)
    source.block("package struct \(message.name): Sendable, Equatable") { source in
      for property in properties {
        source.comment(property.comment)
        source.line("package var \(Names.escaped(property.name)): \(property.type) = \(property.defaultValue)")
      }
      source.line("/// Fields of a newer version of this message, in wire form.")
      source.line("package var unknownFields: [UInt8] = []")
      source.line()
      source.line("package init() {}")
      declareInitialiser(in: &source)
      for (index, oneof) in message.oneofs.enumerated() { declare(oneof, index, in: &source) }
      for type in message.enums {
        source.line()
        EnumSource(type).declare(in: &source)
      }
      for nested in message.messages where !nested.isMapEntry {
        source.line()
        MessageSource(nested, types).declare(in: &source)
      }
    }
  }

  private struct Property {
    let name: String
    let type: String
    let defaultValue: String
    let comment: [String]
  }

  /// The fields in order; a oneof stands where its first field does.
  private var properties: [Property] {
    var seen: Set<Int> = []
    return fields.compactMap { form in
      guard let index = form.field.oneofIndex else {
        return Property(
          name: form.name, type: form.type, defaultValue: form.defaultValue, comment: form.field.comment)
      }
      guard seen.insert(index).inserted else { return nil }
      let oneof = message.oneofs[index]
      return Property(
        name: Names.property(oneof.name), type: Names.upperCamel(oneof.name) + "?", defaultValue: "nil",
        comment: oneof.comment)
    }
  }

  private func declareInitialiser(in source: inout SourceText) {
    let properties = properties
    if properties.isEmpty { return }
    source.line()
    source.line("package init(")
    source.indented(
      properties.enumerated().map { index, property in
        let comma = index + 1 < properties.count ? "," : ""
        return "\(Names.escaped(property.name)): \(property.type) = \(property.defaultValue)\(comma)"
      })
    source.block(")") { source in
      for property in properties {
        source.line("self.\(property.name) = \(Names.escaped(property.name))")
      }
    }
  }

  private func declare(_ oneof: Oneof, _ index: Int, in source: inout SourceText) {
    source.line()
    source.comment(oneof.comment)
    source.block("package enum \(Names.upperCamel(oneof.name)): Sendable, Equatable") { source in
      for form in fields where form.field.oneofIndex == index {
        source.comment(form.field.comment)
        source.line("case \(Names.escaped(form.name))(\(form.element))")
      }
    }
  }

  // MARK: the conformance

  /// Conformances of this message and of those nested in it.
  func conform(in source: inout SourceText) {
    source.line()
    source.block("extension \(swiftName): Protobuf.Message") { source in
      source.line("package static var fullName: String { \"\(message.fullName)\" }")
      source.line()
      declareDecoding(in: &source)
      source.line()
      source.block("package var serializedSize: Int") { source in
        source.line("\(fields.isEmpty ? "let" : "var") size = unknownFields.count")
        for form in fields { emit(form, "size += WireSize.", in: &source) }
        source.line("return size")
      }
      source.line()
      source.block("package func write(to writer: inout WireWriter)") { source in
        for form in fields { emit(form, "writer.", in: &source) }
        source.line("writer.raw(unknownFields)")
      }
    }
    for nested in message.messages where !nested.isMapEntry { MessageSource(nested, types).conform(in: &source) }
  }

  private func emit(_ form: FieldForm, _ call: String, in source: inout SourceText) {
    if let index = form.field.oneofIndex {
      let oneof = Names.property(message.oneofs[index].name)
      source.line("if case .\(form.name)(let value)? = \(Names.referenced(oneof)) { \(call)\(form.call("value")) }")
    } else if form.isMessage, !form.field.isRepeated {
      source.line("if let value = \(Names.referenced(form.name)) { \(call)\(form.call("value")) }")
    } else {
      source.line(call + form.call(Names.referenced(form.name)))
    }
  }

  private func declareDecoding(in source: inout SourceText) {
    let cType = Names.cType(message.fullName)
    source.line("private static let wireType: WireType = {")
    source.indented([
      "var prototype = \(cType)()",
      "\(Names.cFunction(message.fullName))__init(&prototype)",
      "return WireType(prototype.base)",
    ])
    source.line("}()")
    source.line()
    source.block("package init(serialized bytes: UnsafeRawBufferPointer) throws(DecodingError)") { source in
      source.line("let unpacked = try Unpacking.begin(bytes, as: Self.wireType)")
      source.line("self.init(unpacked: unpacked.assumingMemoryBound(to: \(cType).self))")
      source.line("Unpacking.end()")
    }
    source.line()
    source.block("init(unpacked c: UnsafePointer<\(cType)>)") { source in
      for form in fields where form.field.oneofIndex == nil {
        source.line("\(Names.referenced(form.name)) = \(form.copy)")
      }
      for (index, oneof) in message.oneofs.enumerated() { copy(oneof, index, in: &source) }
      source.line("unknownFields = Unpacking.unknownFields(of: c.pointee.base)")
    }
  }

  private func copy(_ oneof: Oneof, _ index: Int, in source: inout SourceText) {
    source.line("switch c.pointee.\(oneof.name)_case.rawValue {")
    for form in fields where form.field.oneofIndex == index {
      let property = Names.referenced(Names.property(oneof.name))
      source.line("case \(form.field.number): \(property) = .\(form.name)(\(form.copy))")
    }
    source.line("default: break")
    source.line("}")
  }
}

/// Emits an enum as an open struct: a number that this version does not know stays what it is.
struct EnumSource {
  private let type: EnumType

  init(_ type: EnumType) {
    self.type = type
  }

  func declare(in source: inout SourceText) {
    var known: [String] = []
    var numbers: Set<Int32> = []
    source.comment(type.comment)
    source.block("package struct \(type.name): RawRepresentable, Hashable, Sendable, CaseIterable") { source in
      for value in type.values {
        let name = Names.enumCase(value.name, of: type.name)
        if numbers.insert(value.number).inserted { known.append("." + name) }
        source.comment(value.comment)
        source.line("package static var \(Names.escaped(name)): Self { Self(rawValue: \(value.number)) }")
      }
      source.line()
      source.line("package var rawValue: Int32")
      source.line()
      source.block("package init(rawValue: Int32)") { $0.line("self.rawValue = rawValue") }
      source.line()
      source.line("/// The values that this version knows.")
      source.line("package static var allCases: [Self] {")
      source.line("  [")
      source.indented(known.map { "  \($0)," })
      source.line("  ]")
      source.line("}")
    }
  }
}
