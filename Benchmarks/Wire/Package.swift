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

// The parser of heads alone. What it measures is for Martlet's own targets only, so its sources are compiled here as a
// target of this package: `Sources/MartletWire` is a link to the library's folder.
let package = Package(
    name: "martlet-wire-benchmarks",
    targets: [
        .target(name: "MartletWire", swiftSettings: settings),
        .executableTarget(
            name: "head-parsing", dependencies: ["MartletWire"], path: "Sources/HeadParsing",
            swiftSettings: settings),
    ]
)
