// A protoc plugin. It reads a CodeGeneratorRequest from standard input and answers with one Swift file for each proto
// package, over the C that protoc-c makes of the same files. The one parameter, `c_module`, names the module of that C.

internal import CPlugin
internal import CProtobufC
internal import Glibc

private func readAll() -> [UInt8] {
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = read(STDIN_FILENO, &chunk, chunk.count)
    if count < 0, errno == EINTR { continue }
    if count <= 0 { return bytes }
    bytes += chunk[..<count]
  }
}

private func writeAll(_ bytes: [UInt8], to descriptor: Int32 = STDOUT_FILENO) {
  var done = 0
  while done < bytes.count {
    let count = bytes[done...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count < 0, errno == EINTR { continue }
    if count <= 0 { exit(1) }
    done += count
  }
}

private func strings(_ array: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ count: Int) -> [String] {
  guard let array else { return [] }
  return (0..<count).compactMap { array[$0].map { String(cString: $0) } }
}

private func generate(_ request: Google__Protobuf__Compiler__CodeGeneratorRequest) throws -> [GeneratedFile] {
  let wanted = Set(strings(request.file_to_generate, request.n_file_to_generate))
  var cModule = "CAPI"
  if let parameter = request.parameter.map({ String(cString: $0) }), !parameter.isEmpty {
    guard parameter.hasPrefix("c_module=") else { throw SchemaError(text: "unknown parameter \(parameter)") }
    cModule = String(parameter.dropFirst("c_module=".count))
  }
  let files = try (0..<request.n_proto_file).compactMap { index in
    try request.proto_file[index].map { try File($0.pointee) }
  }
  return try Generator(files: files, wanted: wanted, cModule: cModule).generate()
}

/// The answer in the form that protoc reads. Memory is not given back: the process ends here.
private func answer(_ files: [GeneratedFile], error: String?) -> [UInt8] {
  var response = Google__Protobuf__Compiler__CodeGeneratorResponse()
  google__protobuf__compiler__code_generator_response__init(&response)
  response.error = error.flatMap { strdup($0) }
  response.n_file = files.count
  response.file = .allocate(capacity: max(files.count, 1))
  for (index, file) in files.enumerated() {
    let entry = UnsafeMutablePointer<Google__Protobuf__Compiler__CodeGeneratorResponse__File>.allocate(capacity: 1)
    google__protobuf__compiler__code_generator_response__file__init(entry)
    entry.pointee.name = strdup(file.name)
    entry.pointee.content = strdup(file.content)
    response.file[index] = entry
  }
  var bytes = [UInt8](
    repeating: 0, count: google__protobuf__compiler__code_generator_response__get_packed_size(&response))
  google__protobuf__compiler__code_generator_response__pack(&response, &bytes)
  return bytes
}

private let input = readAll()
guard let request = google__protobuf__compiler__code_generator_request__unpack(nil, input.count, input) else {
  let complaint = "protoc-gen-swift-rpc: standard input is not a CodeGeneratorRequest; run it through protoc\n"
  writeAll(Array(complaint.utf8), to: STDERR_FILENO)
  exit(1)
}
do {
  writeAll(answer(try generate(request.pointee), error: nil))
} catch let error as SchemaError {
  writeAll(answer([], error: error.text))
}
