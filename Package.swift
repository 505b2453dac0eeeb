// swift-tools-version: 6.2
import PackageDescription

/// Settings of every target: the strictest checks of the language, and warnings as errors.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let systemPackage = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let metrics = Target.Dependency.product(
    name: "CoreMetrics", package: "swift-metrics", condition: .when(traits: ["Metrics"]))
let metricsTestKit = Target.Dependency.product(
    name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Metrics"]))
let tracing = Target.Dependency.product(
    name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"]))
let inMemoryTracing = Target.Dependency.product(
    name: "InMemoryTracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"]))
let lifecycle = Target.Dependency.product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"]))
let swiftConfiguration = Target.Dependency.product(
    name: "Configuration", package: "swift-configuration", condition: .when(traits: ["Configuration"]))
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

/// The features above the core. A program links those that it imports.
let features: [Target.Dependency] = [
    "MartletAuthentication", "MartletCookies", "MartletHSTS", "MartletConditions", "MartletFeatureSettings",
    "MartletCaching", "MartletHosts", "MartletStreams", "MartletDiagnostics", "MartletDigests", "MartletCoding",
]

let package = Package(
    name: "martlet",
    products: [
        .library(name: "Martlet", targets: ["Martlet"]),
        .library(name: "MartletCore", targets: ["MartletCore"]),
        .library(name: "MartletXML", targets: ["MartletXML"]),
        .library(name: "MartletMetalink", targets: ["MartletMetalink"]),
        .library(name: "MartletImages", targets: ["MartletImages"]),
        .library(name: "MartletTesting", targets: ["MartletTesting"]),
        .library(name: "MartletUploads", targets: ["MartletUploads"]),
        .library(name: "MartletWebSocket", targets: ["MartletWebSocket"]),
        .executable(name: "martlet", targets: ["MartletCLI"]),
    ],
    // None is enabled by default, because each trait adds libraries or packages.
    traits: [
        .trait(
            name: "Brotli", description: "Decode and encode the content coding br, with libbrotlidec and libbrotlienc"),
        .trait(name: "Zstandard", description: "Decode and encode the content coding zstd, with libzstd"),
        .trait(name: "Metrics", description: "Count calls, bytes and connections with swift-metrics"),
        .trait(name: "Tracing", description: "Make a span of each call with swift-distributed-tracing"),
        .trait(
            name: "ServiceLifecycle",
            description: "Run download managers and offline queues as services of swift-service-lifecycle"),
        .trait(name: "Configuration", description: "Read the settings of sessions with swift-configuration"),
        .trait(
            name: "ImageDecoding",
            description: "Let MartletImages decode PNG and JPEG, with libpng and libjpeg-turbo"),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-system.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.10.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.4.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-configuration.git", from: "1.4.0", traits: []),
    ],
    targets: [
        .systemLibrary(name: "CMartletOpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CMartletZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CMartletExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CMartletBrotli", pkgConfig: "libbrotlidec", providers: [.apt(["libbrotli-dev"])]),
        .systemLibrary(name: "CMartletZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CMartletPng", pkgConfig: "libpng", providers: [.apt(["libpng-dev"])]),
        .systemLibrary(
            name: "CMartletTurboJPEG", pkgConfig: "libturbojpeg", providers: [.apt(["libturbojpeg0-dev"])]),
        .target(name: "CMartletLinux"),
        .target(name: "MartletWire", swiftSettings: strict),
        .target(name: "MartletURL", swiftSettings: strict),
        .target(
            name: "MartletTransport", dependencies: ["CMartletOpenSSL", "CMartletLinux", "MartletURL", systemPackage],
            swiftSettings: strict),
        .target(name: "MartletStorage", dependencies: ["CMartletZlib", "CMartletLinux"], swiftSettings: strict),
        .target(
            name: "MartletPool", dependencies: ["MartletWire", "MartletTransport"],
            swiftSettings: strict),
        .target(
            name: "MartletCache", dependencies: ["MartletWire", "MartletStorage", "MartletContent"],
            swiftSettings: strict),
        // Challenges of servers, and the credentials that answer them.
        .target(
            name: "MartletCredentials", dependencies: ["MartletWire", "MartletURL", "MartletTransport"],
            swiftSettings: strict),
        // Pure rules of a call: redirects, retries, timeouts.
        .target(
            name: "MartletPolicies", dependencies: ["MartletWire", "MartletURL", "MartletTransport", httpTypes],
            swiftSettings: strict),
        // Formats of bodies, and of the fields that describe them.
        .target(
            name: "MartletContent",
            dependencies: [
                "CMartletZlib", "MartletWire", "MartletURL", httpTypes, systemPackage,
                .target(name: "CMartletBrotli", condition: .when(traits: ["Brotli"])),
                .target(name: "CMartletZstd", condition: .when(traits: ["Zstandard"])),
            ],
            swiftSettings: strict),
        .target(
            name: "MartletCore",
            dependencies: [
                "MartletWire", "MartletURL", "MartletTransport", "MartletStorage", "MartletPool",
                "MartletCredentials", "MartletPolicies", "MartletContent", httpTypes, logging,
                systemPackage, metrics, tracing,
            ],
            swiftSettings: strict),
        // The settings and stages of features whose rules do not need the core, and are compiled beside it.
        .target(
            name: "MartletFeatureSettings",
            dependencies: ["MartletCache", "MartletCookies", "MartletHSTS", "MartletConditions", "MartletCore"],
            swiftSettings: strict),
        .target(
            name: "MartletAuthentication",
            dependencies: [
                "MartletURL", "MartletTransport", "MartletStorage", "MartletCredentials", "MartletCore",
                httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletCookies",
            dependencies: ["MartletWire", "MartletURL", "MartletTransport", "MartletStorage", systemPackage],
            swiftSettings: strict),
        .target(
            name: "MartletHSTS",
            dependencies: [
                "MartletWire", "MartletURL", "MartletTransport", "MartletStorage", "MartletContent", systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletConditions",
            dependencies: ["CMartletLinux", "MartletURL", "MartletTransport", "MartletStorage", systemPackage],
            swiftSettings: strict),
        .target(
            name: "MartletCaching",
            dependencies: [
                "MartletWire", "MartletURL", "MartletTransport", "MartletStorage", "MartletPool",
                "MartletCache", "MartletFeatureSettings", "MartletCredentials", "MartletContent", "MartletCore",
                "MartletAuthentication", "MartletCookies", "MartletConditions", "MartletDigests", httpTypes, logging,
                systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletHosts",
            dependencies: [
                "MartletURL", "MartletTransport", "MartletCredentials", "MartletContent", "MartletCore",
                "MartletAuthentication", "MartletConditions", "MartletFeatureSettings", httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletStreams",
            dependencies: [
                "MartletTransport", "MartletStorage", "MartletContent", "MartletCore", httpTypes,
                systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletDiagnostics",
            dependencies: [
                "MartletWire", "MartletURL", "MartletTransport", "MartletContent", "MartletCore", httpTypes,
                systemPackage,
            ],
            swiftSettings: strict
        ),
        .target(
            name: "MartletDigests",
            dependencies: [
                "MartletWire", "MartletTransport", "MartletPool", "MartletContent", "MartletCore", httpTypes,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletCoding",
            dependencies: [
                "MartletURL", "MartletTransport", "MartletCache", "MartletFeatureSettings", "MartletContent",
                "MartletCore", "MartletDigests", httpTypes,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletDownloads",
            dependencies: [
                "MartletWire", "MartletURL", "MartletTransport", "MartletStorage", "MartletPool",
                "MartletCredentials", "MartletContent", "MartletCore", "MartletAuthentication",
                "MartletFeatureSettings", "MartletStreams", "MartletDigests", "MartletCoding", systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletOffline",
            dependencies: [
                "MartletURL", "MartletTransport", "MartletStorage", "MartletCache", "MartletFeatureSettings",
                "MartletContent", "MartletCore", "MartletAuthentication", "MartletConditions", "MartletCaching",
                "MartletHosts", "MartletDigests", systemPackage,
            ],
            swiftSettings: strict),
        // Adapters for packages that servers use.
        .target(
            name: "MartletServices",
            dependencies: [
                "MartletCore", "MartletCaching", "MartletDownloads", "MartletOffline", lifecycle, swiftConfiguration,
            ],
            swiftSettings: strict),
        .target(
            name: "Martlet",
            dependencies: features + [
                "MartletStorage", "MartletCache", "MartletCore", "MartletDownloads", "MartletOffline",
                "MartletServices", httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletXML", dependencies: ["CMartletExpat", "MartletContent", "MartletCore", "MartletStreams"],
            swiftSettings: strict),
        .target(
            name: "MartletMetalink",
            dependencies: ["MartletContent", "MartletCore", "MartletDownloads", "MartletStreams", "MartletXML"],
            swiftSettings: strict),
        .target(
            name: "MartletImages",
            dependencies: [
                "MartletCore", "MartletConditions", "MartletCaching",
                .target(name: "CMartletPng", condition: .when(traits: ["ImageDecoding"])),
                .target(name: "CMartletTurboJPEG", condition: .when(traits: ["ImageDecoding"])),
            ],
            swiftSettings: strict),
        .target(
            name: "MartletUploads",
            dependencies: [
                "MartletTransport", "MartletCore", "MartletAuthentication", "MartletDigests", "MartletDownloads",
            ],
            swiftSettings: strict),
        .target(name: "MartletWebSocket", dependencies: ["MartletCore", "MartletStreams"], swiftSettings: strict),
        .target(
            name: "MartletTesting",
            dependencies: [
                "CMartletOpenSSL", "MartletWire", "MartletURL", "MartletTransport", "MartletStorage", "MartletContent",
                "MartletCore", "MartletDiagnostics", "MartletWebSocket", httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        .target(
            name: "MartletDemo",
            dependencies: features + [
                "MartletTransport", "MartletContent", "MartletCore", "MartletDownloads", "Martlet",
                "MartletTesting", httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "MartletCLI",
            dependencies: features + [
                "MartletWire", "MartletTransport", "MartletStorage", "MartletCache", "MartletContent",
                "MartletCore", "MartletDownloads", "Martlet", "MartletMetalink", "MartletUploads", "MartletWebSocket",
                "MartletTesting", "MartletDemo", argumentParser, httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        // The checks of the fuzzer, as functions of bytes, so that the tests replay inputs without the fuzzer.
        .target(
            name: "MartletFuzzing",
            dependencies: features + [
                "MartletWire", "MartletURL", "MartletTransport", "MartletStorage", "MartletCache",
                "MartletCredentials", "MartletContent", "MartletCore", "MartletDownloads", "MartletOffline",
                "MartletXML", "MartletMetalink", "MartletImages", "MartletWebSocket", "MartletTesting", httpTypes,
            ],
            path: "Fuzz/MartletFuzzing", swiftSettings: strict),
        // This benchmark uses package declarations, so it cannot have its own package like the other benchmarks.
        .executableTarget(
            name: "cache-store", dependencies: ["MartletWire", "MartletStorage", "MartletCache"],
            path: "Benchmarks/Cache", swiftSettings: strict),
        // Support for the tests of this package.
        .target(
            name: "MartletTestSupport",
            dependencies: [
                "CMartletOpenSSL", "MartletWire", "MartletTransport", "MartletStorage", "MartletCore",
                "MartletCaching", "MartletTesting",
            ],
            path: "Tests/MartletTestSupport", swiftSettings: strict),
        .testTarget(name: "MartletWireTests", dependencies: ["MartletWire"], swiftSettings: strict),
        .testTarget(
            name: "MartletTransportTests",
            dependencies: ["MartletTransport", "MartletTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletConditionsTests",
            dependencies: ["MartletURL", "MartletTransport", "MartletConditions"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletPoolTests",
            dependencies: ["MartletWire", "MartletTransport", "MartletPool"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletStorageTests", dependencies: ["MartletStorage", "MartletTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletCacheTests",
            dependencies: [
                "MartletWire", "MartletStorage", "MartletCache", "MartletTesting",
                "MartletTestSupport", "MartletCacheChild",
            ],
            swiftSettings: strict),
        // A child process of the tests of the cache, which shares a directory with them and is killed.
        .executableTarget(
            name: "MartletCacheChild", dependencies: ["MartletWire", "MartletStorage", "MartletCache"],
            path: "Tests/MartletCacheChild", swiftSettings: strict),
        .testTarget(
            name: "MartletClientTests",
            dependencies: features + [
                "CMartletZlib", "MartletWire", "MartletURL", "MartletTransport", "MartletStorage",
                "MartletPool", "MartletCache", "MartletCredentials", "MartletPolicies", "MartletContent",
                "MartletCore",
                "Martlet", "MartletTesting", "MartletTestSupport", "MartletClientChild", systemPackage,
                httpTypes, logging, metrics, metricsTestKit, tracing, inMemoryTracing,
            ],
            swiftSettings: strict),
        // A child process of the tests of sessions, which shares a cache's directory with them and is killed.
        .executableTarget(
            name: "MartletClientChild", dependencies: ["Martlet", "MartletTesting"],
            path: "Tests/MartletClientChild", swiftSettings: strict),
        .testTarget(
            name: "MartletInterimTests",
            dependencies: ["MartletCore", "MartletCaching", "Martlet", "MartletTesting", "MartletTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletDigestsTests",
            dependencies: [
                "MartletURL", "MartletTransport", "MartletContent", "MartletCore", "MartletCaching", "MartletDigests",
                "MartletDownloads", "Martlet", "MartletTesting", "MartletTestSupport", httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MartletCompressionTests",
            dependencies: [
                "MartletWire", "MartletURL", "MartletTransport", "MartletContent", "MartletCore", "MartletDiagnostics",
                "MartletOffline", "Martlet", "MartletTesting", "MartletTestSupport", httpTypes, systemPackage,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MartletDownloadsTests",
            dependencies: features + [
                "MartletWire", "MartletURL", "MartletTransport", "MartletStorage", "MartletPool",
                "MartletCredentials", "MartletContent", "MartletCore", "MartletDownloads", "Martlet",
                "MartletTesting", "MartletTestSupport", "MartletDownloadsChild", systemPackage,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MartletMirrorsTests",
            dependencies: features + [
                "MartletWire", "MartletTransport", "MartletStorage", "MartletContent", "MartletCore",
                "MartletDownloads", "Martlet", "MartletMetalink", "MartletTesting", "MartletTestSupport", systemPackage,
            ],
            swiftSettings: strict),
        // A child process of the tests of downloads, which shares a directory with them and is killed.
        .executableTarget(
            name: "MartletDownloadsChild",
            dependencies: [
                "MartletStorage", "MartletDownloads", "Martlet", "MartletTestSupport", systemPackage,
            ],
            path: "Tests/MartletDownloadsChild", swiftSettings: strict),
        .testTarget(
            name: "MartletOfflineTests",
            dependencies: [
                "MartletURL", "MartletTransport", "MartletStorage", "MartletContent", "MartletCore",
                "MartletCookies", "MartletHosts", "MartletOffline", "Martlet", "MartletTesting",
                "MartletTestSupport", "MartletOfflineChild", systemPackage,
            ],
            swiftSettings: strict),
        // A child process of the tests of the offline queue, which is killed while it sends.
        .executableTarget(
            name: "MartletOfflineChild", dependencies: ["Martlet", systemPackage],
            path: "Tests/MartletOfflineChild", swiftSettings: strict),
        .testTarget(
            name: "MartletHSTSTests",
            dependencies: ["MartletCore", "MartletHSTS", "Martlet", "MartletTesting", "MartletTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletServicesTests",
            dependencies: [
                "MartletTransport", "MartletAuthentication", "Martlet", "MartletTesting", "MartletTestSupport",
                logging, systemPackage, lifecycle, swiftConfiguration,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MartletUpgradeTests",
            dependencies: ["MartletTransport", "Martlet", "MartletTesting", "MartletTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletUploadsTests",
            dependencies: [
                "MartletCore", "MartletUploads", "MartletTesting", "MartletTestSupport", "MartletUploadsChild",
                systemPackage,
            ],
            swiftSettings: strict),
        // A child process of the tests of uploads, which is killed while it sends.
        .executableTarget(
            name: "MartletUploadsChild", dependencies: ["MartletCore", "MartletUploads", systemPackage],
            path: "Tests/MartletUploadsChild", swiftSettings: strict),
        .testTarget(
            name: "MartletWebSocketTests",
            dependencies: ["MartletCore", "MartletWebSocket", "Martlet", "MartletTesting", "MartletTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletXMLTests",
            dependencies: ["MartletCore", "MartletXML", "MartletTesting", "MartletTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "MartletImagesTests",
            dependencies: [
                "MartletCore", "MartletCaching", "MartletImages", "MartletTesting", "MartletTestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MartletTestingTests",
            dependencies: [
                "MartletWire", "MartletTransport", "MartletContent", "MartletCore", "MartletDiagnostics",
                "MartletTesting", systemPackage,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "MartletFuzzingTests",
            dependencies: ["MartletFuzzing"], swiftSettings: strict),
        .testTarget(
            name: "MartletCLITests",
            dependencies: [
                "MartletWire", "MartletURL", "MartletCredentials", "MartletContent", "MartletCore",
                "MartletConditions", "MartletCaching", "MartletStreams", "MartletDownloads", "MartletOffline",
                "Martlet", "MartletUploads", "MartletWebSocket", "MartletTesting", "MartletCLI", httpTypes,
                systemPackage,
            ],
            swiftSettings: strict),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "MartletWire", "MartletStorage", "MartletCache", "MartletCredentials", "MartletContent",
                "MartletConditions", "MartletXML", "MartletImages", "Martlet", "MartletUploads", "MartletWebSocket",
                "MartletTesting", "MartletCLI", "MartletTestSupport", systemPackage,
            ],
            swiftSettings: strict),
    ]
)

// The fuzzer's program cannot be linked without libFuzzer, which has its main function: only `make fuzz` builds it.
if Context.environment["MARTLET_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "MartletFuzzer", dependencies: ["MartletFuzzing"], path: "Fuzz/MartletFuzzer",
            swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])]))
}

// Comma-separated names of test targets: only these and their dependencies are built, for short sanitizer runs.
if let only = Context.environment["MARTLET_TEST_TARGETS"], !only.isEmpty {
    let targets = Dictionary(uniqueKeysWithValues: package.targets.map { ($0.name, $0) })
    var needed: Set<String> = []
    var pending = only.split(separator: ",").map(String.init)
    while let name = pending.popLast() {
        guard let target = targets[name], needed.insert(name).inserted else { continue }
        for case .targetItem(let name, _) in target.dependencies { pending.append(name) }
        for case .byNameItem(let name, _) in target.dependencies { pending.append(name) }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products.removeAll()
}
