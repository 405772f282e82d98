private import Glibc

/// A throw-away authority and certificates signed by it, in a directory of their own. Needs `openssl` in the path.
package final class TestCertificates: Sendable {
  package let directory: String
  package let caPath: String
  private let issued = ["server", "client"]

  package init() throws {
    var template = Array("/tmp/afterthoughts-tls-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template).map({ String(cString: $0) }) else {
      throw TestSetupFault(text: "no temporary directory")
    }
    directory = made
    caPath = "\(made)/ca.pem"
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

  /// Signs a certificate, named `server` or `client`, with these subject alternative names, such as
  /// `URI:spiffe://afterthoughts/vault`. Issued again, it takes the place of the first, in the same files.
  package func issue(_ name: String, _ names: String) throws -> (certificate: String, key: String) {
    precondition(issued.contains(name))
    let base = "\(directory)/\(name)"
    try run([
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)", "-keyout",
      "\(base).key", "-out", "\(base).csr",
    ])
    guard let file = fopen("\(base).ext", "w") else { throw TestSetupFault(text: "no file for \(name)") }
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
    guard posix_spawnp(&child, "openssl", &actions, nil, &argv, environ) == 0 else {
      throw TestSetupFault(text: "openssl is not installed")
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    guard status == 0 else { throw TestSetupFault(text: "openssl \(arguments.first ?? "") failed") }
  }
}
