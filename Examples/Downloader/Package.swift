// swift-tools-version: 6.2
import PackageDescription

// A program that downloads files concurrently, with a queue on disk.
let package = Package(
    name: "martlet-downloader",
    dependencies: [
        .package(name: "martlet", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
    ],
    targets: [
        .executableTarget(
            name: "downloader",
            dependencies: [
                .product(name: "Martlet", package: "martlet"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Sources/Downloader"),
        .testTarget(
            name: "DownloaderTests",
            dependencies: ["downloader", .product(name: "MartletTesting", package: "martlet")]),
    ]
)
