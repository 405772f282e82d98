internal import Sealing
internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "confirmation", migrations: Migrations.all, settings: { ConfirmationConfig(&$0) },
      build: { runtime, config in
        try ConfirmationParts.make(runtime, signingKey: try SigningKey(pem: config.statementSigningKey))
      })
  }
}
