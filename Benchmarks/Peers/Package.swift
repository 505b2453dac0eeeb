// swift-tools-version: 6.2
import PackageDescription

// The peers of Martlet, in a separate package because they take minutes to build.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

let measure = Target.Dependency.product(name: "Measure", package: "Measure")

let package = Package(
    name: "martlet-peers",
    dependencies: [
        .package(path: "../Measure"),
        .package(url: "https://github.com/swift-server/async-http-client.git", exact: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.0"),
    ],
    targets: [
        .executableTarget(
            name: "async-http-client-contender",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "_NIOFileSystem", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"), measure,
            ],
            path: "Sources/AsyncHTTPClientContender", swiftSettings: settings),
        .executableTarget(
            name: "urlsession-contender", dependencies: [measure], path: "Sources/URLSessionContender",
            swiftSettings: settings),
    ]
)
