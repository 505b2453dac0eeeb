// swift-tools-version: 6.2
import PackageDescription

// The measuring loop of all contenders in Swift, so that they differ only in the client.
let package = Package(
    name: "Measure",
    products: [.library(name: "Measure", targets: ["Measure"])],
    targets: [
        // Functions that Glibc's module does not export.
        .systemLibrary(name: "CMalloc"),
        .target(
            name: "Measure",
            dependencies: ["CMalloc"],
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
