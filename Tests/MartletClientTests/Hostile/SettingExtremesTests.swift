@testable import MartletURL
import Foundation
import Martlet
import MartletCache
import MartletTesting
import SystemPackage
import Testing

@testable import MartletAuthentication
@testable import MartletCaching
@testable import MartletCookies
@testable import MartletCore
@testable import MartletDiagnostics
@testable import MartletHosts
@testable import MartletConditions
@testable import MartletStreams

/// Every numeric setting at its extremes, in real calls. A trap ends the test process, which is a failure.
@Suite("Settings at their extremes", .timeLimit(.minutes(20)))
struct SettingExtremesTests {
    /// An extreme number, and the duration with the same number.
    enum Extreme: CaseIterable {
        case minimum, minusOne, zero, one, maximum

        var count: Int {
            switch self {
            case .minimum: .min
            case .minusOne: -1
            case .zero: 0
            case .one: 1
            case .maximum: .max
            }
        }

        var span: Duration {
            switch self {
            case .minimum: Duration(attoseconds: .min)
            case .minusOne: .seconds(-1)
            case .zero: .zero
            case .one: .seconds(1)
            case .maximum: Duration(attoseconds: .max)
            }
        }

        var fraction: Double {
            switch self {
            case .minimum: -.infinity
            case .minusOne: -1
            case .zero: 0
            case .one: 1
            case .maximum: .infinity
            }
        }
    }

    /// A setting with its path and a function that sets it.
    struct Setting<Root> {
        var name: String
        var set: (inout Root, Extreme) -> Void

        static func count(_ name: String, _ path: WritableKeyPath<Root, Int>) -> Setting {
            Setting(name: name) { $0[keyPath: path] = $1.count }
        }

        static func count(_ name: String, _ path: WritableKeyPath<Root, Int?>) -> Setting {
            Setting(name: name) { $0[keyPath: path] = $1.count }
        }

        static func span(_ name: String, _ path: WritableKeyPath<Root, Duration>) -> Setting {
            Setting(name: name) { $0[keyPath: path] = $1.span }
        }

        static func span(_ name: String, _ path: WritableKeyPath<Root, Duration?>) -> Setting {
            Setting(name: name) { $0[keyPath: path] = $1.span }
        }
    }

    // MARK: Tables

    private static var session: [Setting<SessionConfiguration>] {
        [
            .span("timeouts.poolWait", \.timeouts.poolWait), .span("timeouts.connect", \.timeouts.connect),
            .span("timeouts.head", \.timeouts.head), .span("timeouts.idle", \.timeouts.idle),
            .span("timeouts.unread", \.timeouts.unread), .span("timeouts.total", \.timeouts.total),
            .count("bufferedBodyLimit.bytes", \.bufferedBodyLimit.bytes),
            .count("decompressionLimits.maximumByteCount", \.decompressionLimits.maximumByteCount),
            .count("decompressionLimits.maximumRatio", \.decompressionLimits.maximumRatio),
            .count("decompressionLimits.ratioThreshold", \.decompressionLimits.ratioThreshold),
            .count("decompressionLimits.maximumCodings", \.decompressionLimits.maximumCodings),
            .span("continueTimeout", \.continueTimeout), .span("requestInterval", \.requestInterval),
            .count("pool.connectionsPerHost", \.pool.connectionsPerHost),
            .count("pool.totalConnections", \.pool.totalConnections),
            .count("pool.idleConnectionsPerHost", \.pool.idleConnectionsPerHost),
            .count("pool.idleConnections", \.pool.idleConnections),
            .span("pool.idleLifetime", \.pool.idleLifetime), .span("pool.maximumAge", \.pool.maximumAge),
            .count("pool.maximumUses", \.pool.maximumUses),
            .span("pool.keepAliveMargin", \.pool.keepAliveMargin),
            .span("pool.agingInterval", \.pool.agingInterval),
            Setting(name: "pool.connectionsToHosts") { $0.pool.connectionsToHosts = ["127.0.0.1": $1.count] },
            Setting(name: "bandwidth.total.upload") {
                $0.bandwidth.total.upload = BandwidthRate(bytesPerSecond: $1.count, burst: $1.count)
            },
            Setting(name: "bandwidth.total.download") {
                $0.bandwidth.total.download = BandwidthRate(bytesPerSecond: $1.count, burst: $1.count)
            },
            Setting(name: "bandwidth.perHost.upload") {
                $0.bandwidth.perHost.upload = BandwidthRate(bytesPerSecond: $1.count, burst: $1.count)
            },
            Setting(name: "bandwidth.perHost.download") {
                $0.bandwidth.perHost.download = BandwidthRate(bytesPerSecond: 100_000, burst: $1.count)
            },
            Setting(name: "concurrency") {
                let limits = ConcurrencyPolicy.Limits(
                    perHost: $1.count, total: $1.count, hosts: ["127.0.0.1": $1.count], segments: $1.count)
                $0.concurrency = ConcurrencyPolicy(
                    unmetered: limits, wifi: limits, mobile: limits, unknown: limits)
            },
            .count("wireLimits.headByteLimit", \.wireLimits.headByteLimit),
            .count("wireLimits.lineByteLimit", \.wireLimits.lineByteLimit),
            .count("wireLimits.lineCountLimit", \.wireLimits.lineCountLimit),
            .count("wireLimits.informationalResponseLimit", \.wireLimits.informationalResponseLimit),
            .count("wireLimits.chunkExtensionByteLimit", \.wireLimits.chunkExtensionByteLimit),
            .count("wireLimits.trailerByteLimit", \.wireLimits.trailerByteLimit),
            .count("wireLimits.chunkSizeDigitLimit", \.wireLimits.chunkSizeDigitLimit),
            .count("tls.securityLevel", \.tls.securityLevel),
            .count("redirects.limit", \.redirects.limit),
            .count("retry.maximumAttempts", \.retry.maximumAttempts),
            Setting(name: "retry.backoff") {
                $0.retry.backoff = .exponential(from: $1.span, upTo: Duration(attoseconds: .max))
            },
            Setting(name: "retry.backoff") { $0.retry.backoff = .constant($1.span) },
            Setting(name: "retry.budget") { $0.retry.budget = $1.fraction },
            .span("retry.maximumRetryAfter", \.retry.maximumRetryAfter),
            .span("retry.timeLimit", \.retry.timeLimit),
            .count("authentication.attemptLimit", \.authentication.attemptLimit),
            .count("happyEyeballs.firstFamilyCount", \.happyEyeballs.firstFamilyCount),
            .span("happyEyeballs.attemptDelay", \.happyEyeballs.attemptDelay),
            .count("happyEyeballs.addressLimit", \.happyEyeballs.addressLimit),
            .span("socketOptions.keepAliveInterval", \.socketOptions.keepAliveInterval),
        ]
    }

    private static var events: [Setting<EventStreamOptions>] {
        [
            .span("reconnectionTime", \.reconnectionTime),
            Setting(name: "reconnectionTimeBounds") {
                $0.reconnectionTimeBounds = min($1.span, .zero)...max($1.span, .zero)
            },
            .span("backoffLimit", \.backoffLimit), .count("failureLimit", \.failureLimit),
            .count("eventLimit.bytes", \.eventLimit.bytes),
        ]
    }

    private static var cookies: [Setting<CookieLimits>] {
        [
            .count("perResponse", \.perResponse), .count("perDomain", \.perDomain), .count("total", \.total),
            .count("headerBytes", \.headerBytes), .count("days", \.days),
        ]
    }

    private static var cache: [Setting<ResponseCache.Options>] {
        [
            .span("staleIfError", \.staleIfError)
        ]
    }

    private static let numeric: Set = [
        "Int", "Int32", "Int64", "UInt", "UInt32", "UInt64", "Double", "Duration", "Optional<Int>",
        "Optional<Int64>", "Optional<UInt64>", "Optional<Double>", "Optional<Duration>",
        "ClosedRange<Duration>", "Dictionary<String, Int>", "Optional<BandwidthRate>", "Backoff",
        "Optional<ConcurrencyPolicy>",
    ]

    /// Returns the paths of all stored numbers and durations of a settings value.
    private static func numbers(in value: Any, at path: String = "") -> Set<String> {
        var found: Set<String> = []
        for child in Mirror(reflecting: value).children {
            guard let label = child.label else { continue }
            let name = path.isEmpty ? label : "\(path).\(label)"
            let type = String(describing: type(of: child.value))
            if numeric.contains(type) {
                found.insert(name)
            } else if String(reflecting: Swift.type(of: child.value)).hasPrefix("Martlet") {
                found.formUnion(numbers(in: child.value, at: name))
            }
        }
        return found
    }

    @Test("The tables contain every number and duration of the settings")
    func complete() {
        var configuration = SessionConfiguration.default
        configuration.concurrency = .sharedQueue
        let found = Self.numbers(in: configuration)
        #expect(found.subtracting(Self.session.map(\.name)) == [], "settings that no test knows")
        // Settings of features are stored by key, where a mirror cannot find them.
        let kept: Set = ["authentication.attemptLimit", "concurrency"]
        #expect(Set(Self.session.map(\.name)).subtracting(found) == kept)
        let events = Self.numbers(in: EventStreamOptions()).filter {
            !$0.hasPrefix("request.") && $0 != "sleep"
        }
        #expect(events == Set(Self.events.map(\.name)))
        #expect(Self.numbers(in: CookieLimits()) == Set(Self.cookies.map(\.name)))
        #expect(Self.numbers(in: ResponseCache.Options()) == Set(Self.cache.map(\.name)))
    }

    @Test("Library sources convert durations only with functions that cannot trap")
    func sources() throws {
        let root = FilePath(#filePath).removingLastComponent().appending("../../../Sources")
        let files = try #require(FileManager.default.subpaths(atPath: root.string))
        let sources = files.filter { $0.hasSuffix(".swift") && !$0.hasPrefix("MartletCLI/") }
        #expect(sources.count > 300)
        for file in sources {
            let data = try #require(FileManager.default.contents(atPath: root.appending(file).string))
            let text = String(decoding: data, as: UTF8.self)
            for sign in [".components.seconds", ".components.attoseconds", "attoseconds) ="] {
                #expect(!text.contains(sign), "\(file)")
            }
        }
    }

    // MARK: Calls

    /// Serves a 503 for the first request of each path, and a coded body for all others.
    private static func withOrigin(_ body: (TestOrigin) async throws -> Void) async throws {
        let seen = Counter()
        let coded = Deflated.bytes(Array("hello".utf8), as: .gzip)
        try await TestOrigin.withOrigin { request in
            if request.path == "/busy", seen.next() % 2 == 1 {
                return OriginResponse(503, headers: ["Retry-After": "1"], body: .text("busy"))
            }
            if request.path == "/moved" { return OriginResponse(302, headers: ["Location": "/"]) }
            for try await _ in request.body {}
            return .encoded(coded, coding: "gzip")
        } run: { origin async throws in
            try await body(origin)
        }
    }

    @Test("No extreme setting ends the process or makes a call exceed its total timeout")
    func calls() async throws {
        try await Self.withOrigin { origin async throws in
            for setting in Self.session {
                let name = setting.name
                for extreme in Extreme.allCases {
                    let session = HTTPSession.own {
                        $0.timeouts.total = .milliseconds(500)
                        $0.retry = .transient(maximumAttempts: 2, backoff: .constant(.zero))
                        $0.pool.connectionsPerHost = 1
                        setting.set(&$0, extreme)
                    }
                    await withTaskGroup(of: Void.self) { group in
                        for path in ["/", "/busy", "/moved"] {
                            group.addTask {
                                do {
                                    _ = try await session.get(origin.url(path))
                                } catch {
                                    #expect(error is HTTPError, "\(name) at \(extreme): \(error)")
                                    _ = "\(error)"
                                }
                            }
                        }
                    }
                    var request = try HTTPRequest(method: .put, url: origin.url())
                    request.headerFields[.expect] = "100-continue"
                    _ = try? await session.send(request, body: .text("hello"))
                    await session.invalidateAndCancel()
                }
            }
        }
    }

    @Test(
        "Keep-alive times, byte limits and retry settings out of range are clamped"
    )
    func clamped() async throws {
        try await Self.withOrigin { origin async throws in
            for extreme in Extreme.allCases {
                let session = HTTPSession.own {
                    $0.socketOptions.keepAliveInterval = extreme.span
                    $0.retry = .transient(maximumAttempts: 2, backoff: .constant(.zero), budget: nil)
                    $0.retry.maximumRetryAfter = min(extreme.span, .zero)
                    $0.pool.idleLifetime = extreme.span
                    $0.pool.keepAliveMargin = extreme.span
                    $0.timeouts.poolWait = max(extreme.span, .seconds(30))
                }
                let exchange = try await session.get(origin.url("/busy"))
                #expect(exchange.text == "hello", "\(extreme)")
            }
        }
        var limit = ByteCount(5)
        limit.bytes = -1
        #expect(limit == 0)
        let configuration = { (configuration: inout SessionConfiguration) in
            configuration.bufferedBodyLimit.bytes = -1
        }
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own(configuration).get(origin.url())
            }
            #expect(error?.code == .bodyTooLarge)
        }
    }

    @Test("An event stream waits for a valid duration whatever its settings")
    func eventStreams() {
        for setting in Self.events {
            for extreme in Extreme.allCases {
                var options = EventStreamOptions()
                setting.set(&options, extreme)
                var machine = EventStreamMachine(options)
                machine.read(lastEventID: "", retryMilliseconds: .max)
                for _ in 1...100 {
                    guard case .reconnect(let span) = machine.failed(isTransient: true, jitter: 1) else {
                        break
                    }
                    #expect(span >= .zero && span <= .seconds(4_000_000_000), "\(setting.name) at \(extreme)")
                }
            }
        }
    }

    @Test("A cookie jar accepts any limits")
    func cookieJars() async throws {
        let url = try HTTPURL("http://a.example/")
        let directory = try TemporaryDirectory()
        for setting in Self.cookies {
            for extreme in Extreme.allCases {
                var limits = CookieLimits()
                setting.set(&limits, extreme)
                let jar = CookieJar(
                    file: directory.path("\(setting.name) \(extreme)"), keepsSessionCookies: true, limits: limits
                )
                await jar.store(
                    setCookieBytes: ["a=1; Max-Age=99999999999", "b=2"].map { Array($0.utf8) }, from: url)
                let sent = await jar.headerBytes(for: url)
                let isAll = extreme == .maximum || setting.name == "days" && extreme == .one
                #expect((sent?.count ?? 0) <= (isAll ? 8 : 3), "\(setting.name) at \(extreme)")
            }
        }
    }

    @Test("A cache responds with any options")
    func caches() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
            for setting in Self.cache {
                for extreme in Extreme.allCases {
                    var options = ResponseCache.Options()
                    setting.set(&options, extreme)
                    let session = HTTPSession.own { $0.cache = .memoryOnly(options: options) }
                    for _ in 1...2 { #expect(try await session.get(origin.url()).text == "x") }
                }
            }
        }
    }

    @Test(
        "A count of bytes is printed in the unit that suits it, rounded down",
        arguments: [
            (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1535, "1.4 KiB"), (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1023.9 KiB"), (12 << 20, "12.0 MiB"), (5 << 30, "5.0 GiB"), (3 << 40, "3.0 TiB"),
            (4096 << 40, "4096.0 TiB"), (.max, "unlimited"), (-1, "0 B"),
        ])
    func printedByteCounts(bytes: Int, text: String) { #expect("\(ByteCount(bytes))" == text) }
}
