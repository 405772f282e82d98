private import Glibc

/// The names, without `.sql`, of the files in `services/<service>/Migrations`, in order. `testFile` is the `#filePath`
/// of a file in `Tests/<Name>Tests`.
package func migrationFiles(of service: String, testFile: String = #filePath) -> [String] {
  let root = testFile.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
  guard let directory = opendir("\(root)/services/\(service)/Migrations") else { return [] }
  defer { closedir(directory) }
  var names: [String] = []
  while let entry = readdir(directory) {
    // Safety: `d_name` is a C string inside the entry, which lives until the next call.
    let name = withUnsafePointer(to: &entry.pointee.d_name) { field in
      field.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    if name.hasSuffix(".sql") { names.append(String(name.dropLast(4))) }
  }
  return names.sorted()
}
