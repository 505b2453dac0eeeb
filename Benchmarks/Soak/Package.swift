// swift-tools-version: 6.2
import PackageDescription

// This is a separate package, so that users of the library do not build it.
let package = Package(
    name: "martlet-soak",
    dependencies: [.package(name: "martlet", path: "../..")],
    targets: [
        .target(name: "CSoak"),
        .executableTarget(
            name: "soak",
            dependencies: [
                "CSoak",
                .product(name: "Martlet", package: "martlet"),
                .product(name: "MartletWebSocket", package: "martlet"),
                .product(name: "MartletTesting", package: "martlet"),
            ],
            path: "Sources/Soak",
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("ExistentialAny"),
                .strictMemorySafety(),
                .treatAllWarnings(as: .error),
            ]),
    ]
)
