// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

// The package measures only the store of the response cache. The store is not public, so links to the library's
// directories compile its sources as targets of this package.
let package = Package(
    name: "martlet-cache-benchmarks",
    targets: [
        .systemLibrary(name: "CMartletZlib", pkgConfig: "zlib"),
        .target(name: "CMartletLinux"),
        .target(name: "MartletWire", swiftSettings: settings),
        .target(name: "MartletStorage", dependencies: ["CMartletZlib", "CMartletLinux"], swiftSettings: settings),
        .target(
            name: "MartletCache", dependencies: ["MartletWire", "MartletStorage"], swiftSettings: settings),
        .executableTarget(
            name: "cache-store", dependencies: ["MartletCache", "MartletStorage", "MartletWire"],
            path: "Sources/CacheStore", swiftSettings: settings),
    ]
)
