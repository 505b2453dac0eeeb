// swift-tools-version: 6.2
import PackageDescription

// The loop that all contenders written in Swift run, so that nothing but the client under it differs.
let package = Package(
    name: "Measure",
    products: [.library(name: "Measure", targets: ["Measure"])],
    targets: [
        // What Glibc's module does not show.
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
