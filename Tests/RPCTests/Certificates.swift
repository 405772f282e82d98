import Glibc
import Testing

/// A throw-away authority and certificates signed by it, in a directory of their own.
final class Certificates: Sendable {
  let directory: String
  let caPath: String

  init(authority: String = "ca") throws {
    var template = Array("/tmp/afterthoughts-tls-XXXXXX".utf8CString)
    directory = try #require(mkdtemp(&template).map { String(cString: $0) })
    caPath = "\(directory)/\(authority).pem"
    try run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
      "/CN=test authority", "-keyout", "\(directory)/ca.key", "-out", caPath,
    ])
  }

  deinit {
    for name in ["ca.pem", "ca.key"] + issued.flatMap({ ["\($0).pem", "\($0).key", "\($0).csr", "\($0).ext"] }) {
      unlink("\(directory)/\(name)")
    }
    rmdir(directory)
  }

  private let issued = ["server", "client", "other", "plain"]

  /// Signs a certificate with these subject alternative names, such as `URI:spiffe://afterthoughts/vault`.
  func issue(_ name: String, _ names: String) throws -> (certificate: String, key: String) {
    precondition(issued.contains(name))
    let base = "\(directory)/\(name)"
    try run([
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)", "-keyout",
      "\(base).key", "-out", "\(base).csr",
    ])
    let file = try #require(fopen("\(base).ext", "w"))
    fputs("subjectAltName=\(names)\n", file)
    fclose(file)
    try run([
      "x509", "-req", "-in", "\(base).csr", "-CA", caPath, "-CAkey", "\(directory)/ca.key", "-set_serial",
      "\(UInt32.random(in: 1...UInt32.max))", "-days", "2", "-extfile", "\(base).ext", "-out", "\(base).pem",
    ])
    return ("\(base).pem", "\(base).key")
  }

  private func run(_ arguments: [String]) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var argv: [UnsafeMutablePointer<CChar>?] = (["openssl"] + arguments).map { strdup($0) } + [nil]
    defer { for text in argv { free(text) } }
    var child = pid_t()
    try #require(posix_spawnp(&child, "openssl", &actions, nil, &argv, environ) == 0)
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    try #require(status == 0)
  }
}
