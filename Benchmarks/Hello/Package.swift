// swift-tools-version: 6.2
import PackageDescription

// The smallest programs with Martlet, for measuring their build time, size and start time.
let package = Package(
    name: "martlet-hello",
    dependencies: [.package(name: "martlet", path: "../..")],
    targets: [
        .executableTarget(
            name: "hello", dependencies: [.product(name: "Martlet", package: "martlet")],
            path: "Sources/Hello"),
        .executableTarget(
            name: "hello-core", dependencies: [.product(name: "MartletCore", package: "martlet")],
            path: "Sources/HelloCore"),
    ]
)
