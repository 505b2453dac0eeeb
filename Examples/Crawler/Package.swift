// swift-tools-version: 6.2
import PackageDescription

// A program that reads the pages of a website, politely.
let package = Package(
    name: "martlet-crawler",
    dependencies: [
        .package(name: "martlet", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
    ],
    targets: [
        .executableTarget(
            name: "crawler",
            dependencies: [
                .product(name: "Martlet", package: "martlet"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Sources/Crawler"),
        .testTarget(
            name: "CrawlerTests",
            dependencies: ["crawler", .product(name: "MartletTesting", package: "martlet")]),
    ]
)
