// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that whoever uses the library builds none of it.
let package = Package(
    name: "martlet-benchmarks",
    dependencies: [.package(name: "martlet", path: "..")],
    targets: [
        .executableTarget(
            name: "small-gets",
            dependencies: [.product(name: "Martlet", package: "martlet")],
            path: "Sources/SmallGets",
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("ExistentialAny"),
                .strictMemorySafety(),
                .treatAllWarnings(as: .error),
            ])
    ]
)
