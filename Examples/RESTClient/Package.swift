// swift-tools-version: 6.2
import PackageDescription

// A typed client of a REST service, as a library with tests.
let package = Package(
    name: "martlet-rest-client",
    products: [.library(name: "NotesClient", targets: ["NotesClient"])],
    dependencies: [.package(name: "martlet", path: "../..")],
    targets: [
        .target(name: "NotesClient", dependencies: [.product(name: "Martlet", package: "martlet")]),
        .testTarget(
            name: "NotesClientTests",
            dependencies: ["NotesClient", .product(name: "MartletTesting", package: "martlet")]),
    ]
)
