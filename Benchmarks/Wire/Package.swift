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

// The package measures only the parser of heads. The parser is not public, so `Sources/MartletWire` links to the
// library's directory and compiles its sources as a target of this package.
let package = Package(
    name: "martlet-wire-benchmarks",
    targets: [
        .target(name: "MartletWire", swiftSettings: settings),
        .executableTarget(
            name: "head-parsing", dependencies: ["MartletWire"], path: "Sources/HeadParsing",
            swiftSettings: settings),
    ]
)
