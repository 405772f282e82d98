internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "recipients", migrations: Migrations.all, settings: { _ in },
      build: { runtime, _ in try RecipientsParts.make(runtime) })
  }
}
