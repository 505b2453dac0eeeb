import HTTPTypes
import Martlet
@testable import MartletCore
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@Suite("Options of a call, its host and its session")
struct SettingsMergeTests {
    /// An option with one value for a host and another one for a call.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let set: @Sendable (inout RequestOptions, _ isCall: Bool) -> Void
        let text: @Sendable (RequestOptions) -> String
        /// The text of both values merged; `nil` if the call's value replaces the host's.
        var both: String?

        var testDescription: String { name }

        /// Returns an option that is replaced as a whole.
        static func option<Value: Sendable>(
            _ name: String, _ place: any WritableKeyPath<RequestOptions, Value> & Sendable, _ host: Value,
            _ call: Value, both: String? = nil
        ) -> Row {
            Row(
                name: name, set: { $0[keyPath: place] = $1 ? call : host },
                text: { "\($0[keyPath: place])" }, both: both)
        }
    }

    /// The names are those of stored properties. A feature's setting has the name of its public property.
    static let rows: [Row] = [
        .option("timeouts", \.timeouts.total, .seconds(1), .seconds(2)),
        .option("priority", \.priority, .low, .high),
        .option("queueOrder", \.queueOrder, .firstComeFirstServed, .lastComeFirstServed),
        .option("bodyLimit", \.bodyLimit, 1, 2), .option("decompresses", \.decompresses, true, false),
        .option("version", \.version, .http10, .http11),
        .option("returnsRawBody", \.returnsRawBody, true, false),
        .option("ignoresContentLength", \.ignoresContentLength, true, false),
        .option(
            "allowsResendingNonIdempotentMethods", \.allowsResendingNonIdempotentMethods, true, false),
        Row(
            name: "omittedFields", set: { $0.omittedFields = $1 ? [.accept] : [.userAgent] },
            text: { "\($0.omittedFields.map(\.rawName).sorted())" }, both: #"["Accept", "User-Agent"]"#),
        Row(
            name: "trailers", set: { $0.trailers = $1 ? [.accept: "c"] : [.accept: "h", .contentType: "h"] },
            text: { "\($0.trailers.map { "\($0.name)=\($0.value)" })" },
            both: #"["Accept=c", "Content-Type=h"]"#),
        Row(
            name: "proxy", set: { $0.proxy = $1 ? ProxySettings.none : .environment },
            text: { options in options.proxy.map { "\($0)" } ?? "nil" }),
        .option("redirects", \.redirects, .doNotFollow, .follow(limit: 3)),
        .option("retry", \.retry, .transient(), .never),
        .option("idempotencyKey", \.idempotencyKey, .value("h"), .random),
        Row(
            name: "validator", set: { $0.validator = $1 ? .anything : .success },
            text: { options in options.validator.map { "\($0)" } ?? "nil" }),
        Row(
            name: "onInterimResponse",
            set: { options, isCall in
                options.onInterimResponse = { _ in report.text.withLock { $0 = isCall ? "call" : "host" } }
            },
            text: { options in
                guard let closure = options.onInterimResponse else { return "nil" }
                let own = Report()
                $report.withValue(own) { closure(HTTPResponse(status: 103)) }
                return own.text.withLock { $0 }
            }),
        .option("serviceClass", \.serviceClass, .background, .voice),
        Row(
            name: "bandwidth",
            set: {
                $0.bandwidth.upload = $1 ? nil : .bytesPerSecond(1)
                $0.bandwidth.download = .bytesPerSecond($1 ? 2 : 1)
            },
            text: {
                "\($0.bandwidth.upload?.bytesPerSecond ?? 0) \($0.bandwidth.download?.bytesPerSecond ?? 0)"
            },
            both: "1 2"),
        Row(
            name: "bandwidthGroup", set: { $0.bandwidthGroup = $1 ? groups.call : groups.host },
            text: { "\($0.bandwidthGroup?.number ?? 0)" }),
        .option("usesCookies", \.usesCookies, false, true), .option("usesHSTS", \.usesHSTS, false, true),
        .option("cacheMode", \.cacheMode, .reload, .onlyIfCached),
        .option("cachePartition", \.cachePartition, "h", "c"),
        .option("meteredNetworks", \.meteredNetworks, .denied, .allowed),
        Row(
            name: "authentication",
            set: { $0.authentication = AuthenticationSettings(credentials: .bearer($1 ? "c" : "h")) },
            text: { "\($0.authentication?.credentials == .bearer("c"))\($0.authentication == nil)" }),
    ]

    /// The text that the closure of an option sets.
    private final class Report: Sendable { let text = Mutex("") }

    @TaskLocal private static var report = Report()

    private static let groups = {
        let session = HTTPSession.own()
        return (host: BandwidthGroup(session, limit: .none), call: BandwidthGroup(session, limit: .none))
    }()

    private static func options(_ row: Row, isCall: Bool) -> RequestOptions {
        RequestOptions { row.set(&$0, isCall) }
    }

    @Test("The table has a row for each stored option")
    func completeness() throws {
        func names(_ value: Any) -> [String] { Mirror(reflecting: value).children.compactMap(\.label) }
        let options = RequestOptions { $0.omittedFields = [.accept] }
        let box = try #require(Mirror(reflecting: options).children.first { $0.label == "box" }?.value)
        let boxed = try #require(Mirror(reflecting: box).children.first?.value)
        let content = try #require(Mirror(reflecting: boxed).children.first?.value)
        let stored = Set(names(options) + names(content)).subtracting(["box", "settings"])
        #expect(stored.count > 15)
        let features: Set = [
            "usesCookies", "usesHSTS", "cacheMode", "cachePartition", "meteredNetworks", "authentication",
        ]
        #expect(Set(SettingsMergeTests.rows.map(\.name)) == stored.union(features))
    }

    @Test(
        "A call's option overrides its host's, and the host's applies if the call has none",
        arguments: rows)
    func precedence(_ row: Row) {
        let none = RequestOptions()
        let (host, call) = (
            SettingsMergeTests.options(row, isCall: false), SettingsMergeTests.options(row, isCall: true)
        )
        #expect(row.text(host) != row.text(none) && row.text(call) != row.text(host))
        #expect(row.text(none.merged(over: host)) == row.text(host))
        #expect(row.text(call.merged(over: none)) == row.text(call))
        #expect(row.text(call.merged(over: host)) == row.both ?? row.text(call))
        #expect(row.text(none.merged(over: none)) == row.text(none))
    }

    @Test("Each option is merged separately and does not affect the others", arguments: rows)
    func independence(_ row: Row) {
        let host = SettingsMergeTests.options(row, isCall: false)
        for other in SettingsMergeTests.rows where other.name != row.name {
            let merged = SettingsMergeTests.options(other, isCall: true).merged(over: host)
            #expect(row.text(merged) == row.text(host), "beside \(other.name)")
            #expect(other.text(merged) == other.text(SettingsMergeTests.options(other, isCall: true)))
        }
    }

    private static let leaves: [any WritableKeyPath<Timeouts, Duration?> & Sendable] = [
        \.poolWait, \.connect, \.head, \.idle, \.unread, \.total,
    ]

    @Test(
        "Each timeout is merged separately, an assigned nil is a value, and unassigned ones keep the default"
    )
    func timeouts() {
        #expect(Mirror(reflecting: Timeouts()).children.count == SettingsMergeTests.leaves.count)
        for leaf in SettingsMergeTests.leaves {
            for value: Duration? in [nil, .zero, .milliseconds(1), .seconds(-1), .seconds(Int64.max)] {
                var (session, call) = (Timeouts(), Timeouts())
                for other in SettingsMergeTests.leaves { session[keyPath: other] = .seconds(7) }
                call[keyPath: leaf] = value
                let merged = call.merged(over: session)
                for other in SettingsMergeTests.leaves {
                    #expect(merged[keyPath: other] == (other == leaf ? call[keyPath: leaf] : .seconds(7)))
                }
                if let value, value.components.seconds < 1_000_000_000 {
                    #expect(call[keyPath: leaf] == value)
                }
                #expect((call[keyPath: leaf] == nil) == (value == nil))
            }
            #expect(Timeouts().merged(over: Timeouts())[keyPath: leaf] == Timeouts()[keyPath: leaf])
        }
        #expect(Timeouts(connect: nil) != Timeouts() && Timeouts(connect: nil).connect == nil)
        #expect(
            Timeouts(connect: .seconds(3)).merged(over: Timeouts(total: .seconds(60))).total == .seconds(60))
    }

    @Test("A timeout of a call does not change the session's total timeout")
    func totalStays() async throws {
        let script = ServerScript(.expectRequestHead, .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let session = HTTPSession.own { $0.timeouts.total = .milliseconds(300) }
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(
                    origin.url(), options: .init(timeouts: .init(connect: TestTimeouts.long, idle: nil)))
            }
            #expect(error?.timeout == .total)
        }
    }

    @Test("A timeout of a call does not change its host's retry policy, and a policy of the call replaces it")
    func hostRetryStays() async throws {
        try await TestOrigin.withOrigin { request in
            request.number % 2 == 1 ? OriginResponse(503) : .text("up")
        } run: { origin async throws in
            let api = try HTTPSession.own().host(origin.url()).with {
                $0.options.retry = .transient(backoff: .constant(.zero))
            }
            let call = RequestOptions { $0.timeouts.head = TestTimeouts.long }
            #expect(try await api.get("a", options: call).text == "up")
            #expect(try await api.call(Status(options: call)).text == "up")
            let once = RequestOptions { $0.retry = .never }
            #expect(try await api.get("a", options: once).statusCode == 503)
        }
    }

    private struct Status: HTTPEndpoint {
        typealias Response = HTTPExchange
        var path: String { "status" }
        var options: RequestOptions?
    }

    @Test("Secrets of a host's options stay at its origin, also with options of the call")
    func secretsStay() throws {
        let api = try HTTPSession.own().host("https://api.example/").with {
            $0.options.authentication = AuthenticationSettings(credentials: .bearer("secret"))
            $0.options.idempotencyKey = .value("secret")
            $0.options.trailers = [.accept: "secret"]
            $0.options.retry = .transient()
        }
        let call = RequestOptions { $0.timeouts.head = .seconds(1) }
        let away = try api.prepare(.get, "https://other.example/", options: call).options
        #expect(away.authentication == nil && away.idempotencyKey == nil && away.trailers.isEmpty)
        #expect(away.retry == .transient() && away.timeouts.head == .seconds(1))
        let home = try api.prepare(.get, "a", options: call).options
        #expect(home.authentication != nil && home.idempotencyKey != nil && !home.trailers.isEmpty)
    }
}
