import MartletCache
import MartletWire
import Testing

@Suite("Cache updates after a response")
struct ResponseTests {
    private func decide(
        _ response: ResponseHead, to request: CacheRequest = Scene.request(), variants: [StoredVariant],
        after: Int64 = 200, policy: CachePolicy = CachePolicy()
    ) -> ResponseDecision {
        let decision = CacheDecision(request, variants: variants, now: Scene.at(after), policy: policy)
        let decider = CacheUpdateRule(
            request, after: decision, variants: variants, policy: policy)
        return decider.received(response, requestTime: Scene.at(after), responseTime: Scene.at(after))
    }

    private func words(_ decision: ResponseDecision) -> String {
        var words =
            switch decision.delivery {
            case .network: "network"
            case .stored(let answer): "stored \(answer.variant)"
            case .staleOnError(let answer): "stale \(answer.variant)"
            case .repeatUnconditionally: "again"
            }
        if case .store = decision.storage { words += ", store" }
        if !decision.freshened.isEmpty { words += ", freshen \(decision.freshened.map(\.variant))" }
        if !decision.removed.isEmpty { words += ", remove \(decision.removed)" }
        return words
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let variants: [String]
        let status: Int
        let response: String
        let words: String
        let request: String
        let method: String
        let mode: CacheMode
        var testDescription: String {
            "\(method) \(request.debugDescription), stored \(variants): \(status) \(response.debugDescription)"
        }

        init(
            _ variants: [String], _ status: Int, _ response: String, _ words: String, request: String = "",
            method: String = "GET", mode: CacheMode = .standard
        ) {
            self.variants = variants
            self.status = status
            self.response = response
            self.words = words
            self.request = request
            self.method = method
            self.mode = mode
        }
    }

    private static let base = "Date: {0}\nCache-Control: max-age=100"
    private static let a = base + "\nETag: \"a\""
    private static let weak = base + "\nETag: W/\"a\""
    private static let b = base + "\nETag: \"b\""
    private static let dated = base + "\nLast-Modified: {-9}"
    /// The date of ``dated`` with a year of two digits, which are also those of the date a century earlier.
    private static let shortDate = "Last-Modified: Friday, 15-Jan-27 07:59:51 GMT"
    private static let earlierDate = "Last-Modified: Sat, 15 Jan 1927 07:59:51 GMT"
    private static let shortDated = base + "\n" + shortDate
    private static let earlierDated = base + "\n" + earlierDate

    static let notModified: [Row] = [
        Row([a], 304, "ETag: \"a\"", "stored 0, freshen [0]"),
        Row([a], 304, "", "stored 0, freshen [0]"),
        Row([a], 304, "ETag: W/\"a\"", "stored 0, freshen [0]"),
        Row([weak], 304, "ETag: W/\"a\"", "stored 0, freshen [0]"),
        Row([weak], 304, "ETag: \"a\"", "stored 0, freshen [0]"),
        Row([a], 304, "ETag: \"x\"", "again"),
        Row([a], 304, "ETag: broken", "again"),
        Row([dated], 304, "", "stored 0, freshen [0]"),
        Row([dated], 304, "Last-Modified: {-9}", "stored 0, freshen [0]"),
        Row([dated], 304, "Last-Modified: {-8}", "again"),
        Row([dated], 304, shortDate, "stored 0, freshen [0]"),
        Row([shortDated], 304, shortDate, "stored 0, freshen [0]"),
        Row([shortDated], 304, "Last-Modified: {-9}", "stored 0, freshen [0]"),
        Row([dated], 304, earlierDate, "again"),
        Row([earlierDated], 304, shortDate, "again"),
        Row([dated], 304, "ETag: \"x\"", "again"),
        Row([a, b], 304, "ETag: \"b\"", "stored 1, freshen [1]"),
        Row([a, b], 304, "ETag: \"a\"", "stored 0, freshen [0]"),
        Row([a, b], 304, "", "again"),
        Row([a, a], 304, "ETag: \"a\"", "stored 1, freshen [1, 0]"),
        Row([weak, weak], 304, "ETag: W/\"a\"", "stored 1, freshen [1]"),
        Row([base], 304, "", "network"),
        Row([], 304, "", "network"),
        Row([a], 304, "ETag: \"a\"", "network, freshen [0]", request: "If-None-Match: \"a\""),
        Row([a], 304, "ETag: \"x\"", "network", request: "If-None-Match: \"x\""),
        Row([a], 304, "", "network", request: "If-None-Match: \"x\""),
        Row([a], 304, "ETag: \"a\"\nCache-Control: no-store", "stored 0, remove [0]"),
        Row([a], 304, "ETag: \"a\"\nVary: *", "stored 0, remove [0]"),
        Row([a], 304, "ETag: \"a\"\nConnection: Cache-Control", "stored 0, remove [0]"),
        Row([a], 304, "ETag: \"a\"", "network", request: "Cache-Control: no-store"),
        Row([a], 304, "ETag: \"a\"", "stored 0, freshen [0]", mode: .cacheThenNetwork),
        Row([a], 304, "ETag: \"a\"", "network, freshen [0]", mode: .reload),
    ]

    @Test(
        "A 304 freshens the matching variant, and one for an unknown variant repeats the request",
        arguments: notModified)
    func answersNotModified(_ row: Row) { check(row) }

    static let full: [Row] = [
        Row([], 200, "Cache-Control: max-age=60", "network, store"),
        Row([a], 200, "Cache-Control: max-age=60", "network, store"),
        Row([a], 200, "Cache-Control: max-age=60", "network, store", mode: .reload),
        Row([a], 200, "Cache-Control: no-store", "network, remove [0]"),
        Row([a], 200, "Vary: *", "network, remove [0]"),
        Row([a], 200, "Cache-Control: max-age=60", "network", request: "Cache-Control: no-store"),
        Row([a], 200, "Cache-Control: max-age=60", "network", mode: .noStore),
        Row([a], 404, "", "network, store"),
        Row([a], 404, "Cache-Control: no-store", "network, remove [0]"),
        Row([a], 302, "", "network, remove [0]"),
        Row([a], 401, "", "network"),
        Row([a], 403, "", "network"),
        Row([a], 429, "", "network"),
        Row([a], 500, "", "network"),
        Row([a], 500, "Cache-Control: max-age=60", "network"),
        Row([a], 501, "", "network"),
        Row([], 500, "Cache-Control: max-age=60", "network, store"),
        Row([], 501, "", "network, store"),
        Row([a], 206, "Content-Range: bytes 0-1/9", "network", request: "Range: bytes=0-1"),
        Row([a], 200, "Cache-Control: max-age=60", "network", request: "Range: bytes=0-1"),
        Row([a], 200, "", "network", method: "POST"),
        Row([a], 304, "", "network", method: "POST"),
    ]

    @Test("A new response is stored or removes the old one, and a failure does neither", arguments: full)
    func answersFull(_ row: Row) { check(row) }

    static let heads: [Row] = [
        Row([a], 200, "ETag: \"a\"", "network, freshen [0]", method: "HEAD"),
        Row([a], 200, "ETag: \"a\"\nContent-Length: 1000", "network, freshen [0]", method: "HEAD"),
        Row([a], 200, "ETag: \"a\"\nContent-Length: 999", "network, remove [0]", method: "HEAD"),
        Row([a], 200, "ETag: \"a\"\nContent-Length: x", "network, remove [0]", method: "HEAD"),
        Row([a], 200, "ETag: \"b\"", "network, remove [0]", method: "HEAD"),
        Row([a], 200, "ETag: W/\"a\"", "network, remove [0]", method: "HEAD"),
        Row([a], 200, "", "network, freshen [0]", method: "HEAD"),
        Row([dated], 200, "Last-Modified: {-9}", "network, freshen [0]", method: "HEAD"),
        Row([dated], 200, "Last-Modified: {-8}", "network, remove [0]", method: "HEAD"),
        Row([a], 200, "ETag: \"a\"\nCache-Control: no-store", "network, remove [0]", method: "HEAD"),
        Row([a], 404, "", "network", method: "HEAD"),
        Row([a], 500, "", "network", method: "HEAD"),
        Row([], 200, "Cache-Control: max-age=60", "network", method: "HEAD"),
    ]

    @Test(
        "A response to HEAD freshens or invalidates the stored response to GET",
        arguments: heads)
    func answersHead(_ row: Row) { check(row) }

    private func check(_ row: Row) {
        let request = Scene.request(row.request, method: row.method, mode: row.mode)
        let decision = decide(
            Scene.response(row.status, row.response), to: request,
            variants: row.variants.map { Scene.stored($0) })
        #expect(words(decision) == row.words)
    }

    static let errors: [(Int, Bool)] = [
        (500, true), (502, true), (503, true), (504, true), (501, false), (505, false), (400, false),
        (404, false),
        (429, false), (200, false),
    ]

    @Test("A stale response replaces a 500, 502, 503 or 504 and no other status", arguments: errors)
    func staleOnError(_ status: Int, _ isBridged: Bool) {
        let stored = Scene.stored(Self.a + "\nCache-Control: stale-if-error=300")
        let decision = decide(Scene.response(status), variants: [stored])
        if case .staleOnError(let answer) = decision.delivery {
            #expect(isBridged && answer.isStale && answer.content == .whole)
            // The network was used, so this is not a hit (RFC 9211 §2.1).
            #expect(
                answer.status.text
                    == "martlet; fwd=stale; fwd-status=\(status); ttl=-100; detail=\"stale-if-error\"")
            #expect(decision.removed.isEmpty && decision.freshened.isEmpty)
        } else {
            #expect(!isBridged)
        }
    }

    struct Failure: Sendable {
        let directives: String
        let request: String
        let mode: CacheMode
        let isBridged: Bool

        init(_ directives: String, _ request: String, _ mode: CacheMode, _ isBridged: Bool) {
            self.directives = directives
            self.request = request
            self.mode = mode
            self.isBridged = isBridged
        }
    }

    static let failures: [Failure] = [
        Failure("stale-if-error=300", "", .standard, true),
        Failure("stale-if-error=100", "", .standard, false),
        Failure("stale-if-error=300, must-revalidate", "", .standard, false),
        Failure("stale-if-error=300, proxy-revalidate", "", .standard, false),
        Failure("stale-if-error=300, no-cache", "", .standard, false),
        Failure("stale-if-error=300", "Cache-Control: no-cache", .standard, false),
        Failure("stale-if-error=300", "Cache-Control: no-store", .standard, false),
        Failure("stale-if-error=300", "Range: bytes=0-1", .standard, true),
        Failure("stale-if-error=300", "", .revalidate, false),
        Failure("stale-if-error=300", "", .reload, false),
        Failure("stale-if-error=300", "", .cacheThenNetwork, true),
        Failure("public", "Cache-Control: stale-if-error=300", .standard, true),
        Failure("public", "", .standard, false),
    ]

    @Test("A stale response replaces a connection failure unless a directive forbids it", arguments: failures)
    func failed(_ row: Failure) {
        let stored = Scene.stored(Self.a + "\nCache-Control: " + row.directives)
        let request = Scene.request(row.request, mode: row.mode)
        let decision = CacheDecision(request, variants: [stored], now: Scene.at(200))
        let decider = CacheUpdateRule(request, after: decision, variants: [stored])
        let answer = decider.failed(now: Scene.at(201))
        #expect((answer != nil) == row.isBridged)
        #expect(answer?.status.isHit != true && answer?.status.forwarding != .some(.uriMiss))
    }

    @Test("The policy can allow stale responses on errors if no directive decides")
    func policyStaleIfError() {
        let policy = CachePolicy(staleIfError: 300)
        for (text, isBridged) in [(Self.a, true), (Self.a + "\nCache-Control: must-revalidate", false)] {
            let decision = decide(Scene.response(503), variants: [Scene.stored(text)], policy: policy)
            if case .staleOnError = decision.delivery { #expect(isBridged) } else { #expect(!isBridged) }
        }
    }

    @Test("A 304 replaces the stored fields except those that describe the stored bytes")
    func freshenedFields() throws {
        let stored = Scene.stored(
            Self.a + "\nAge: 77\nX-Old: 1\nX-Old: 2\nX-Kept: 3\nContent-Length: 1000\nContent-Encoding: gzip"
                + "\nContent-Type: a/b")
        let response = Scene.response(
            304,
            """
            Date: {200}
            ETag: "a"
            Cache-Control: max-age=5
            X-Old: 9
            X-New: 8
            Content-Length: 0
            Content-Encoding: br
            Content-Range: bytes 0-1/2
            Content-Type: c/d
            Connection: X-Hop
            X-Hop: 7
            """)
        let decision = decide(response, to: Scene.request("Accept-Encoding: gzip"), variants: [stored])
        let head = try #require(decision.freshened.first).head
        #expect(
            Scene.text(head.fields) == """
                X-Kept: 3
                Content-Length: 1000
                Content-Encoding: gzip
                Date: Fri, 15 Jan 2027 08:03:20 GMT
                ETag: "a"
                Cache-Control: max-age=5
                X-Old: 9
                X-New: 8
                Content-Type: c/d
                """)
        #expect(head.responseTime == Scene.at(200) && head.status == 200)
        guard case .stored(let answer) = decision.delivery else { throw StorageTests.Missing() }
        #expect(answer.head.status == 200 && answer.content == .whole && !answer.isStale)
        #expect(answer.status.text == "martlet; fwd=stale; fwd-status=304; ttl=5")
    }

    @Test("The freshness after a 304 without Date counts from its arrival")
    func freshenedDate() throws {
        let decision = decide(Scene.response(304), variants: [Scene.stored(Self.a + "\nAge: 99")])
        let head = try #require(decision.freshened.first).head
        #expect(Freshness(of: head, now: Scene.at(210)).age == 10)
    }

    @Test(
        "A 304 that names another request's variant serves it, and retains its selecting fields unless it has Vary")
    func variantNamedByServer() throws {
        let selections = [StoredHead.Selection(name: "foo", value: "1")]
        let stored = Scene.stored(Self.a + "\nVary: Foo", selections: selections)
        let request = Scene.request("Foo: 2")
        let decision = decide(Scene.response(304, "ETag: \"a\""), to: request, variants: [stored])
        #expect(words(decision) == "stored 0, freshen [0]")
        #expect(decision.freshened.first?.head.selections == selections)
        let other = decide(Scene.response(304, "ETag: \"a\"\nVary: Bar"), to: request, variants: [stored])
        #expect(other.freshened.first?.head.selections == [.init(name: "bar", value: nil)])
    }

    @Test("Cache-Status of a head contains the lifetime, and not that the response is stored")
    func fullAnswerStatus() {
        let decision = decide(Scene.response(200, "Cache-Control: max-age=60"), variants: [])
        #expect(decision.status.text == "martlet; fwd=uri-miss; fwd-status=200; ttl=60")
    }
}
