internal import API
internal import EventLoop
internal import Mail
internal import Postgres
internal import Primitives
internal import RPC
internal import ServiceKit

@main
struct Main {
  static func main() async {
    await ServiceMain.run(
      name: "notifications", migrations: Migrations.all, settings: { NotificationsConfig(&$0) },
      build: { runtime, config in
        let mailer = try Mailer(
          url: config.smtpURL, credentials: config.credentials, sendTimeout: SendRules.mailTimeout,
          pool: BlockingPool(name: "mail", threads: config.mailConnections, queueMax: 64))
        let sendService = SendService(database: runtime.database, dataKeys: runtime.dataKeys)
        let sender = Sender(
          database: runtime.database, dataKeys: runtime.dataKeys, mailer: mailer, from: config.from,
          directory: IdentityV1.DirectoryServiceClient(try runtime.neighbours.channel(to: "identity")),
          queued: sendService.queued, mailConnections: config.mailConnections)
        let notices = NoticeService(
          database: runtime.database, dataKeys: runtime.dataKeys, requests: runtime.requests,
          pageTokens: runtime.pageTokens)
        return ServiceParts(
          services: [sendService, notices],
          access: SendService.access.merging(NoticeService.access) { first, _ in first },
          workers: [Worker("sender") { await sender.run() }])
      })
  }
}

enum Migrations {
  static let all = [
    Migration("v0001_create_notifications", PackageResources.v0001_create_notifications_sql),
    Migration("v0002_create_notices", PackageResources.v0002_create_notices_sql),
    Migration("v0003_index_sends_by_channel", PackageResources.v0003_index_sends_by_channel_sql),
  ]
}
