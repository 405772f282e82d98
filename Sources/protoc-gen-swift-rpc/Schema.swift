internal import CPlugin

// The parts of a CodeGeneratorRequest that the generator uses, as plain values. protoc has checked the files already.

struct SchemaError: Error {
  let text: String
}

struct File {
  let name: String
  let package: String
  let messages: [MessageType]
  let enums: [EnumType]
  let services: [ServiceType]
  let imports: [String]
  /// The `FileDescriptorProto` without its comments.
  let serialized: [UInt8]
}

struct MessageType {
  let name: String
  /// With the package, without a leading dot.
  let fullName: String
  let comment: [String]
  let fields: [Field]
  let oneofs: [Oneof]
  let messages: [MessageType]
  let enums: [EnumType]
  let isMapEntry: Bool
}

struct Oneof {
  let name: String
  let comment: [String]
}

struct Field {
  enum Kind {
    case double, float, int64, uint64, int32, fixed64, fixed32, bool, string, bytes, uint32, sfixed32, sfixed64
    case sint32, sint64
    case message(String)
    case enumeration(String)
  }

  let name: String
  let number: Int32
  let comment: [String]
  let kind: Kind
  let isRepeated: Bool
  let isPacked: Bool
  let oneofIndex: Int?
}

struct EnumType {
  struct Value {
    let name: String
    let number: Int32
    let comment: [String]
  }

  let name: String
  let fullName: String
  let comment: [String]
  let values: [Value]
}

struct ServiceType {
  struct Method {
    let name: String
    let comment: [String]
    let input: String
    let output: String
    let streamsRequests: Bool
    let streamsResponses: Bool
    let isIdempotent: Bool
  }

  let name: String
  let fullName: String
  let comment: [String]
  let methods: [Method]
}

// MARK: reading the C structs

/// Comments by the path of what they belong to (SourceCodeInfo).
private struct Comments {
  private var lines: [[Int32]: [String]] = [:]

  init(_ info: UnsafeMutablePointer<Google__Protobuf__SourceCodeInfo>?) {
    guard let info else { return }
    for location in pointers(info.pointee.location, info.pointee.n_location) {
      let leading = text(location.leading_comments)
      let comment = leading.isEmpty ? text(location.trailing_comments) : leading
      guard !comment.isEmpty, let path = location.path else { continue }
      var found = comment.split(separator: "\n", omittingEmptySubsequences: false).map { line in
        String(line.first == " " ? line.dropFirst() : line)
      }
      while found.last == "" { found.removeLast() }
      lines[Array(UnsafeBufferPointer(start: path, count: location.n_path))] = found
    }
  }

  subscript(_ path: [Int32]) -> [String] { lines[path] ?? [] }
}

private func text(_ characters: UnsafeMutablePointer<CChar>?) -> String {
  guard let characters else { return "" }
  return String(cString: characters)
}

/// The structs behind a C array of pointers.
private func pointers<Element>(
  _ array: UnsafeMutablePointer<UnsafeMutablePointer<Element>?>?, _ count: Int
) -> [Element] {
  guard let array else { return [] }
  return (0..<count).compactMap { array[$0]?.pointee }
}

/// A type name as protoc writes it, without its leading dot.
private func typeName(_ name: UnsafeMutablePointer<CChar>?) -> String {
  let name = text(name)
  return name.hasPrefix(".") ? String(name.dropFirst()) : name
}

extension File {
  init(_ file: Google__Protobuf__FileDescriptorProto) throws {
    name = text(file.name)
    package = text(file.package)
    guard text(file.syntax) == "proto3" else { throw SchemaError(text: "\(text(file.name)): only proto3 is supported") }
    guard file.n_extension == 0 else { throw SchemaError(text: "\(text(file.name)): extensions are not supported") }
    let comments = Comments(file.source_code_info)
    let scope = package.isEmpty ? "" : package + "."
    messages = try pointers(file.message_type, file.n_message_type).enumerated().map {
      try MessageType($0.element, scope: scope, path: [4, Int32($0.offset)], comments)
    }
    enums = pointers(file.enum_type, file.n_enum_type).enumerated().map {
      EnumType($0.element, scope: scope, path: [5, Int32($0.offset)], comments)
    }
    services = pointers(file.service, file.n_service).enumerated().map {
      ServiceType($0.element, scope: scope, path: [6, Int32($0.offset)], comments)
    }
    imports = (0..<file.n_dependency).map { text(file.dependency[$0]) }
    var bare = file
    bare.source_code_info = nil
    serialized = [UInt8](unsafeUninitializedCapacity: google__protobuf__file_descriptor_proto__get_packed_size(&bare)) {
      // Safety: it writes as many bytes as it has just said.
      $1 = google__protobuf__file_descriptor_proto__pack(&bare, $0.baseAddress)
    }
  }
}

extension MessageType {
  fileprivate init(
    _ message: Google__Protobuf__DescriptorProto, scope: String, path: [Int32], _ comments: Comments
  ) throws {
    let fullName = scope + text(message.name)
    self.fullName = fullName
    name = text(message.name)
    comment = comments[path]
    fields = try pointers(message.field, message.n_field).enumerated().map {
      try Field($0.element, of: fullName, comments[path + [2, Int32($0.offset)]])
    }.sorted { $0.number < $1.number }
    oneofs = pointers(message.oneof_decl, message.n_oneof_decl).enumerated().map {
      Oneof(name: text($0.element.name), comment: comments[path + [8, Int32($0.offset)]])
    }
    messages = try pointers(message.nested_type, message.n_nested_type).enumerated().map {
      try MessageType($0.element, scope: fullName + ".", path: path + [3, Int32($0.offset)], comments)
    }
    enums = pointers(message.enum_type, message.n_enum_type).enumerated().map {
      EnumType($0.element, scope: fullName + ".", path: path + [4, Int32($0.offset)], comments)
    }
    isMapEntry = message.options.map { $0.pointee.map_entry != 0 } ?? false
  }
}

extension Field {
  fileprivate init(_ field: Google__Protobuf__FieldDescriptorProto, of message: String, _ comment: [String]) throws {
    name = text(field.name)
    number = field.number
    self.comment = comment
    if field.has_proto3_optional != 0, field.proto3_optional != 0 {
      throw SchemaError(
        text: "\(message).\(text(field.name)): libprotobuf-c knows no optional fields; use a oneof of one field")
    }
    kind = try Kind(field, of: message)
    isRepeated = field.label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED
    oneofIndex = field.has_oneof_index != 0 ? Int(field.oneof_index) : nil
    let isPackable =
      switch kind {
      case .string, .bytes, .message: false
      default: true
      }
    let isUnpacked = field.options.map { $0.pointee.has_packed != 0 && $0.pointee.packed == 0 } ?? false
    isPacked = isRepeated && isPackable && !isUnpacked
  }
}

extension Field.Kind {
  fileprivate init(_ field: Google__Protobuf__FieldDescriptorProto, of message: String) throws {
    switch field.type {
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_DOUBLE: self = .double
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FLOAT: self = .float
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_INT64: self = .int64
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_UINT64: self = .uint64
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_INT32: self = .int32
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FIXED64: self = .fixed64
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FIXED32: self = .fixed32
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BOOL: self = .bool
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_STRING: self = .string
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BYTES: self = .bytes
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_UINT32: self = .uint32
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SFIXED32: self = .sfixed32
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SFIXED64: self = .sfixed64
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SINT32: self = .sint32
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SINT64: self = .sint64
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_MESSAGE: self = .message(typeName(field.type_name))
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_ENUM: self = .enumeration(typeName(field.type_name))
    default: throw SchemaError(text: "\(message).\(text(field.name)): groups are not supported")
    }
  }
}

extension EnumType {
  fileprivate init(
    _ type: Google__Protobuf__EnumDescriptorProto, scope: String, path: [Int32], _ comments: Comments
  ) {
    name = text(type.name)
    fullName = scope + name
    comment = comments[path]
    values = pointers(type.value, type.n_value).enumerated().map {
      Value(
        name: text($0.element.name), number: $0.element.number, comment: comments[path + [2, Int32($0.offset)]])
    }
  }
}

extension ServiceType {
  fileprivate init(
    _ service: Google__Protobuf__ServiceDescriptorProto, scope: String, path: [Int32], _ comments: Comments
  ) {
    name = text(service.name)
    fullName = scope + name
    comment = comments[path]
    methods = pointers(service.method, service.n_method).enumerated().map { index, method in
      Method(
        name: text(method.name),
        comment: comments[path + [2, Int32(index)]],
        input: typeName(method.input_type),
        output: typeName(method.output_type),
        streamsRequests: method.client_streaming != 0,
        streamsResponses: method.server_streaming != 0,
        isIdempotent: method.options.map { $0.pointee.idempotency_level.rawValue != 0 } ?? false)
    }
  }
}
