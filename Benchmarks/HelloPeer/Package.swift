// swift-tools-version: 6.2
import PackageDescription

// The smallest program with async-http-client, for comparison with those with Martlet.
let package = Package(
    name: "martlet-hello-peer",
    dependencies: [
        .package(url: "https://github.com/swift-server/async-http-client.git", exact: "1.37.0")
    ],
    targets: [
        .executableTarget(
            name: "hello-peer",
            dependencies: [.product(name: "AsyncHTTPClient", package: "async-http-client")],
            path: "Sources/HelloPeer")
    ]
)
