internal import Glibc
internal import Primitives
internal import Protobuf

/// Reads and writes messages for another codec to compare: `codec-peer --list` prints the names of the API's types, else
/// each line `NAME HEX` on the input is answered by the message's encoding in hex, `-` for an empty one, or by
/// `refused: WHY`; an empty line asks for the answers so far.
@main
enum Main {
  static func main() {
    if CommandLine.arguments.dropFirst().first == "--list" {
      for type in APITypes.all { print(type.fullName) }
      return
    }
    let types = Dictionary(uniqueKeysWithValues: APITypes.all.map { ($0.fullName, $0) })
    while let line = readLine() {
      if line.isEmpty {
        fflush(nil)
        continue
      }
      let parts = line.split(separator: " ")
      guard parts.count == 2, let type = types[String(parts[0])] else {
        print("refused: no such type")
        continue
      }
      print(answer(type, parts[1]))
    }
  }

  private static func answer(_ type: any Message.Type, _ hex: Substring) -> String {
    do {
      guard let bytes = hex == "-" ? [] : Hex.decode(hex) else { return "refused: no hex" }
      let output = try type.init(serialized: bytes).serialized()
      return output.isEmpty ? "-" : Hex.encode(output)
    } catch {
      return "refused: \(error)"
    }
  }
}
