internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "vault", migrations: Migrations.all, settings: { VaultConfig(&$0) },
      build: { runtime, config in try VaultParts.make(runtime, config) })
  }
}
