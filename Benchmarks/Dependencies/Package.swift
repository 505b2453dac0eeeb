// swift-tools-version: 6.2
import PackageDescription

// A program with all dependencies of Martlet and without Martlet, which shows the cost of the dependencies.
let package = Package(
    name: "martlet-dependencies",
    dependencies: [
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-system.git", from: "1.8.0"),
    ],
    targets: [
        .executableTarget(
            name: "dependencies",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Sources/Dependencies")
    ]
)
