internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "entitlement", migrations: Migrations.all, settings: { _ in },
      build: { runtime, _ in EntitlementParts.make(runtime) })
  }
}
