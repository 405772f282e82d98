// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

/// A C library: a module map and a shim header, imported by exactly one Swift module.
func system(_ name: String, _ pkgConfig: String? = nil) -> Target {
  .systemLibrary(name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig)
}

func module(_ name: String, _ dependencies: [Target.Dependency], _ extra: [SwiftSetting] = []) -> Target {
  .target(name: name, dependencies: dependencies, path: "Sources/\(name)", exclude: [], swiftSettings: settings + extra)
}

/// For modules whose state is confined to a loop: debug builds, and so all tests, check exclusive access at run time;
/// release builds save that sixth of a call's time.
let confined: [SwiftSetting] = [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: settings)
}

/// One service: an executable named as its folder, its proto package, its schema and its certificate.
func service(_ name: String, _ extra: [Target.Dependency] = [], migrations: Bool = true) -> Target {
  .executableTarget(
    name: name,
    dependencies: ["Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing", "ServiceKit"]
      + extra,
    path: "services/\(name)",
    exclude: ["README.md"],
    sources: ["Sources"],
    resources: migrations ? [.embedInCode("Migrations")] : [],
    swiftSettings: settings)
}

let package = Package(
  name: "afterthoughts",
  targets: [
    system("CLinux"),
    system("COpenSSL", "libssl"),
    system("CCrypto", "libcrypto"),
    system("CNghttp2", "libnghttp2"),
    system("CZlib", "zlib"),
    system("CProtobufC", "libprotobuf-c"),
    system("CPostgres", "libpq"),
    system("CArgon2", "libargon2"),
    system("CCurl", "libcurl"),
    system("CMicroHTTPD", "libmicrohttpd"),
    system("CUtf8proc"),
    system("CCmark", "libcmark-gfm"),

    module("Primitives", []),
    module("EventLoop", ["Primitives", "CLinux", "COpenSSL"], confined),
    module("HTTP2", ["Primitives", "EventLoop", "CNghttp2", "CZlib"], confined),
    module("Protobuf", ["Primitives", "CProtobufC"]),
    module("RPC", ["Primitives", "EventLoop", "HTTP2", "Protobuf"], confined),
    .target(name: "CAPI", dependencies: ["CProtobufC"], path: "Sources/CAPI", publicHeadersPath: "include"),
    module("API", ["Primitives", "Protobuf", "RPC", "CAPI", "CProtobufC"]),
    module("Postgres", ["Primitives", "EventLoop", "CPostgres"]),
    module("Events", ["Primitives", "EventLoop", "Postgres", "RPC", "API", "Protobuf"]),
    module("Sealing", ["Primitives", "EventLoop", "CCrypto", "CArgon2", "CUtf8proc"]),
    module("HTTPServer", ["Primitives", "EventLoop", "CMicroHTTPD"]),
    module("Mail", ["Primitives", "EventLoop", "CCurl"]),
    module("Markdown", ["Primitives", "CCmark"]),
    .target(
      name: "ServiceKit",
      dependencies: [
        "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing", "HTTPServer",
      ],
      path: "Sources/ServiceKit", resources: [.embedInCode("Migrations")], swiftSettings: settings),

    module(
      "TestKit", ["Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing", "ServiceKit"]),

    service("identity"),
    service("vault"),
    service("entitlement"),

    service("gateway", ["HTTPServer", "Markdown"], migrations: false),
    service("recipients"),
    service("confirmation"),
    service("delivery"),
    service("notifications", ["Mail"]),

    .executableTarget(
      name: "protoc-gen-swift-rpc", dependencies: ["CPlugin", "CProtobufC"], path: "Sources/protoc-gen-swift-rpc",
      swiftSettings: settings),
    .target(
      name: "CPlugin", dependencies: ["CProtobufC"], path: "Sources/CPlugin", exclude: ["plugin.proto"],
      publicHeadersPath: "include"),

    .executableTarget(
      name: "echo-server", dependencies: ["EventLoop", "RPC", "Protobuf"], path: "Tests/Bench/echo-server",
      swiftSettings: settings),

    .target(
      name: "CInterop", dependencies: ["CProtobufC"], path: "Tests/Conformance/CInterop", publicHeadersPath: "include"),
    .target(
      name: "InteropAPI", dependencies: ["Protobuf", "RPC", "CInterop", "CProtobufC"],
      path: "Tests/Conformance/InteropAPI", swiftSettings: settings),
    .executableTarget(
      name: "interop-server", dependencies: ["InteropAPI", "EventLoop", "RPC", "Primitives", "Protobuf", "ServiceKit"],
      path: "Tests/Conformance/interop-server", swiftSettings: settings),
    .executableTarget(
      name: "interop-client", dependencies: ["InteropAPI", "EventLoop", "RPC", "Primitives", "Protobuf"],
      path: "Tests/Conformance/interop-client", swiftSettings: settings),
    .executableTarget(
      name: "codec-peer", dependencies: ["API", "Protobuf", "Primitives"], path: "Tests/Conformance/codec-peer",
      swiftSettings: settings),

    tests("PrimitivesTests", ["Primitives"]),
    tests("EventLoopTests", ["EventLoop", "Primitives"]),
    .target(
      name: "CProtobufTests", dependencies: ["CProtobufC"], path: "Tests/CProtobufTests",
      exclude: ["kinds.proto", "oracle.py"],
      publicHeadersPath: "include"),
    tests("ProtobufTests", ["Protobuf", "API", "Primitives", "CProtobufTests", "CProtobufC", "protoc-gen-swift-rpc"]),
    tests("RPCTests", ["RPC", "HTTP2", "API", "Protobuf", "EventLoop", "Primitives"]),
    tests("PostgresTests", ["Postgres", "EventLoop", "Primitives"]),
    tests("SealingTests", ["Sealing", "EventLoop", "Primitives"]),
    .testTarget(
      name: "MailTests", dependencies: ["Mail", "EventLoop", "Primitives"], path: "Tests/MailTests",
      exclude: ["smtp_server.py"], swiftSettings: settings),
    tests("MarkdownTests", ["Markdown", "Primitives"]),
    tests(
      "IdentityTests",
      [
        "identity", "TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing",
        "ServiceKit",
      ]),
    tests(
      "VaultTests",
      [
        "vault", "TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing",
        "ServiceKit",
      ]),
    tests(
      "EntitlementTests", ["entitlement", "TestKit", "Primitives", "RPC", "API", "Postgres", "ServiceKit"]),
    tests(
      "RecipientsTests",
      [
        "recipients", "TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing",
        "ServiceKit",
      ]),
    tests(
      "ConfirmationTests",
      [
        "confirmation", "TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing",
        "ServiceKit",
      ]),
    tests("HTTPServerTests", ["HTTPServer", "EventLoop", "Primitives"]),
    tests(
      "SystemTests",
      [
        "identity", "vault", "recipients", "confirmation", "delivery", "entitlement", "notifications", "TestKit",
        "Primitives", "EventLoop", "RPC", "API", "Sealing", "ServiceKit",
      ]),
    tests(
      "EventsTests",
      ["TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "ServiceKit"]),
    tests(
      "ServiceKitTests",
      [
        "TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing", "ServiceKit",
      ]),
    tests(
      "DeliveryTests",
      [
        "delivery", "TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events", "Sealing",
        "ServiceKit",
      ]),
    .testTarget(
      name: "NotificationsTests",
      dependencies: [
        "notifications", "TestKit", "Mail", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Postgres", "Events",
        "Sealing", "ServiceKit",
      ],
      path: "Tests/NotificationsTests", exclude: ["smtp_server.py"], swiftSettings: settings),
    tests(
      "GatewayTests",
      [
        "gateway", "HTTPServer", "TestKit", "Primitives", "EventLoop", "RPC", "API", "Protobuf", "Sealing",
        "ServiceKit",
      ]),
  ]
)
