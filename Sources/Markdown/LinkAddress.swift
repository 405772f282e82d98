/// Addresses that a letter may link to.
enum LinkAddress {
  private static let schemes = ["http://", "https://", "mailto:"]

  /// The address with every byte outside RFC 3986's characters percent-encoded; nil unless its scheme is http, https
  /// or mailto and it goes somewhere.
  static func checked(_ address: String) -> String? {
    guard let scheme = schemes.first(where: { address.lowercased().hasPrefix($0) }),
      address.utf8.count > scheme.utf8.count, address.utf8.count <= 2048,
      !address.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F })
    else { return nil }
    var output: [UInt8] = []
    for byte in address.utf8 {
      if isPlain(byte) {
        output.append(byte)
      } else {
        let digits = Array("0123456789ABCDEF".utf8)
        output += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~:/?#[]@!$&'()*+,;=%".utf8.contains(byte)
    }
  }
}
