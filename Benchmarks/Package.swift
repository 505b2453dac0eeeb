// swift-tools-version: 6.2
import PackageDescription

// This is a separate package, so that users of the library do not build it. The peers are in another package, so that
// this one builds without them.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]
let package = Package(
    name: "martlet-benchmarks",
    dependencies: [.package(name: "martlet", path: ".."), .package(path: "Measure")],
    targets: [
        .executableTarget(
            name: "martlet-contender",
            dependencies: [
                .product(name: "Martlet", package: "martlet"), .product(name: "Measure", package: "Measure"),
            ],
            path: "Sources/MartletContender",
            swiftSettings: strict),
        .executableTarget(
            name: "websocket-contender",
            dependencies: [
                .product(name: "MartletCore", package: "martlet"),
                .product(name: "MartletWebSocket", package: "martlet"),
                .product(name: "Measure", package: "Measure"),
            ],
            path: "Sources/WebSocketContender", swiftSettings: strict),
    ]
)
