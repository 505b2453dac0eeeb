// swift-tools-version: 6.2
import PackageDescription

// A feature that another package adds to Martlet: it imports MartletCore, and nothing that is not public.
let package = Package(
    name: "martlet-circuit-breaker",
    products: [.library(name: "CircuitBreaker", targets: ["CircuitBreaker"])],
    dependencies: [.package(name: "martlet", path: "../..")],
    targets: [
        .target(name: "CircuitBreaker", dependencies: [.product(name: "MartletCore", package: "martlet")]),
        .testTarget(
            name: "CircuitBreakerTests",
            dependencies: ["CircuitBreaker", .product(name: "MartletTesting", package: "martlet")]),
    ]
)
