// swift-tools-version: 6.2
import PackageDescription

// A reverse proxy: Hummingbird is its server, and Martlet its client.
let package = Package(
    name: "martlet-reverse-proxy",
    dependencies: [
        .package(name: "martlet", path: "../.."),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
    ],
    targets: [
        .executableTarget(
            name: "reverse-proxy",
            dependencies: [
                .product(name: "Martlet", package: "martlet"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Sources/ReverseProxy"),
        .testTarget(
            name: "ReverseProxyTests",
            dependencies: ["reverse-proxy", .product(name: "MartletTesting", package: "martlet")]),
    ]
)
