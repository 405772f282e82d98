// What one field looks like: its Swift type, how it is written, and how it is read from the C struct.

struct FieldForm {
  let field: Field
  /// The property's name, not escaped.
  let name: String
  /// The type of one value.
  let element: String
  /// The `WireKind` of one value.
  let wire: String
  /// Key and value when the field is a map.
  let map: [FieldForm]

  init(_ field: Field, _ types: Types) {
    self.field = field
    name = Names.property(field.name)
    element = FieldForm.element(field.kind, types)
    wire = FieldForm.wire(field.kind, types)
    if case .message(let typeName) = field.kind, let entry = types.messages[typeName], entry.isMapEntry {
      map = entry.fields.map { FieldForm($0, types) }
    } else {
      map = []
    }
  }

  var isMessage: Bool {
    if case .message = field.kind { true } else { false }
  }

  /// The property's type, if the field is not part of a oneof.
  var type: String {
    if !map.isEmpty { return "[\(map[0].element): \(map[1].element)]" }
    if field.isRepeated { return "[\(element)]" }
    return isMessage ? element + "?" : element
  }

  var defaultValue: String {
    if !map.isEmpty { return "[:]" }
    if field.isRepeated { return "[]" }
    switch field.kind {
    case .message: return "nil"
    case .enumeration: return "\(element)(rawValue: 0)"
    case .string: return "\"\""
    case .bytes: return "[]"
    case .bool: return "false"
    default: return "0"
    }
  }

  // MARK: writing

  /// The arguments of `WireSize.x` and `WireWriter.x`, with the name of the function.
  func call(_ value: String) -> String {
    if !map.isEmpty { return "map(\(field.number), \(map[0].wire).self, \(map[1].wire).self, \(value))" }
    let arguments = "(\(field.number), \(wire).self, \(value))"
    if field.isPacked { return "packed" + arguments }
    if field.isRepeated { return "repeated" + arguments }
    return (isMessage || field.oneofIndex != nil ? "present" : "field") + arguments
  }

  // MARK: reading

  /// The expression that copies the field out of the C struct that `c` points to.
  var copy: String {
    let member = "c.pointee.\(Names.cMember(field.name))"
    let count = "c.pointee.n_\(field.name.lowercased())"
    if !map.isEmpty {
      return "Unpacking.map(\(member), \(count)) { c in (\(map[0].copy), \(map[1].mapValueCopy)) }"
    }
    guard field.isRepeated else {
      if isMessage, field.oneofIndex == nil { return "\(member).map { \(element)(unpacked: $0) }" }
      return single(member)
    }
    switch field.kind {
    case .string: return "Unpacking.strings(\(member), \(count))"
    case .bytes: return "Unpacking.byteArrays(\(member), \(count))"
    case .message: return "Unpacking.messages(\(member), \(count)) { \(element)(unpacked: $0) }"
    case .bool, .enumeration: return "Unpacking.values(\(member), \(count)) { \(single("$0")) }"
    default: return "Unpacking.values(\(member), \(count))"
    }
  }

  /// A map's message value may be left out on the wire.
  private var mapValueCopy: String {
    isMessage ? "\(copy) ?? \(element)()" : copy
  }

  private func single(_ member: String) -> String {
    switch field.kind {
    case .string: "Unpacking.string(\(member))"
    case .bytes: "Unpacking.bytes(\(member))"
    case .bool: "\(member) != 0"
    case .enumeration: "\(element)(rawValue: Int32(truncatingIfNeeded: \(member).rawValue))"
    case .message: "\(element)(unpacked: \(member))"
    default: member
    }
  }

  private static func element(_ kind: Field.Kind, _ types: Types) -> String {
    switch kind {
    case .double: "Double"
    case .float: "Float"
    case .int64, .sint64, .sfixed64: "Int64"
    case .uint64, .fixed64: "UInt64"
    case .int32, .sint32, .sfixed32: "Int32"
    case .uint32, .fixed32: "UInt32"
    case .bool: "Bool"
    case .string: "String"
    case .bytes: "[UInt8]"
    case .message(let name), .enumeration(let name): types.swiftName(name)
    }
  }

  private static func wire(_ kind: Field.Kind, _ types: Types) -> String {
    switch kind {
    case .double: "WireDouble"
    case .float: "WireFloat"
    case .int64: "WireInt64"
    case .uint64: "WireUInt64"
    case .int32: "WireInt32"
    case .fixed64: "WireUFixed64"
    case .fixed32: "WireUFixed32"
    case .bool: "WireBool"
    case .string: "WireString"
    case .bytes: "WireBytes"
    case .uint32: "WireUInt32"
    case .sfixed32: "WireSFixed32"
    case .sfixed64: "WireSFixed64"
    case .sint32: "WireSInt32"
    case .sint64: "WireSInt64"
    case .message(let name): "WireMessage<\(types.swiftName(name))>"
    case .enumeration(let name): "WireEnum<\(types.swiftName(name))>"
    }
  }
}
