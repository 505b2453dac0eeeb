// swift-tools-version: 6.2
import PackageDescription

// What the smallest programs with Martlet in them cost: to build, to store, to start.
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
