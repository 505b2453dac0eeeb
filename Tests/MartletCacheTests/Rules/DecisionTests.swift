import MartletCache
import MartletWire
import Testing

@Suite("Cache lookup decisions")
struct DecisionTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let stored: String?
        let request: String
        let after: Int64
        let words: String
        let method: String
        let mode: CacheMode
        let status: Int
        var testDescription: String {
            "\(mode) \(method) \(request.debugDescription), stored \((stored ?? "nothing").debugDescription): \(words)"
        }

        init(
            _ stored: String?, _ request: String, after: Int64 = 50, _ words: String, method: String = "GET",
            mode: CacheMode = .standard, status: Int = 200
        ) {
            self.stored = stored
            self.request = request
            self.after = after
            self.words = words
            self.method = method
            self.mode = mode
            self.status = status
        }

        init(
            _ stored: String?, after: Int64 = 50, _ words: String, method: String = "GET",
            mode: CacheMode = .standard, status: Int = 200
        ) {
            self.init(stored, "", after: after, words, method: method, mode: mode, status: status)
        }
    }

    private static let fresh = "Date: {0}\nETag: \"a\"\nCache-Control: max-age=100"
    private static let dated = "Date: {0}\nLast-Modified: {-9}\nCache-Control: max-age=100"
    private static let bare = "Date: {0}\nCache-Control: max-age=100"

    private static func with(_ more: String) -> String { fresh + ", " + more }

    static let standard: [Row] = [
        Row(nil, "forward uri-miss"),
        Row(fresh, "serve 200"),
        Row(fresh, after: 99, "serve 200"),
        Row(fresh, after: 100, "validate stale INM=\"a\""),
        Row(fresh, after: -1, "validate stale INM=\"a\""),
        Row(dated, after: 100, "validate stale IMS"),
        Row(dated + "\nETag: W/\"b\"", after: 100, "validate stale INM=W/\"b\" IMS"),
        Row(bare, after: 100, "validate stale"),
        Row(bare + "\nETag: a", after: 100, "validate stale"),
        Row(bare + "\nETag: \"a\"\nETag: \"b\"", after: 100, "validate stale"),
        Row(bare + "\nLast-Modified: once", after: 100, "validate stale"),
        Row(fresh, after: 100, "validate stale", status: 404),
        Row(fresh, "serve 301", status: 301),
        Row(with("no-cache"), "validate stale INM=\"a\""),
        Row(with("no-cache=\"x\""), "serve 200"),
        Row(with("must-revalidate"), "serve 200"),
        Row(with("private"), "serve 200"),
        Row(fresh, "forward method", method: "POST"),
        Row(fresh, "forward method", method: "get"),
        Row(fresh, "forward method", method: "OPTIONS"),
        Row(fresh, "serve 200 empty", method: "HEAD"),
        Row(fresh, after: 100, "forward stale", method: "HEAD"),
        Row(nil, "forward uri-miss", method: "HEAD"),
    ]

    @Test("A fresh response is served, and a stale one is validated", arguments: standard)
    func decidesStandard(_ row: Row) { check(row) }

    static let directives: [Row] = [
        Row(fresh, "Cache-Control: no-cache", "validate request INM=\"a\""),
        Row(fresh, "Pragma: no-cache", "validate request INM=\"a\""),
        Row(fresh, "Cache-Control: no-store", "forward request"),
        Row(fresh, "Cache-Control: max-age=50", "serve 200"),
        Row(fresh, "Cache-Control: max-age=49", "validate request INM=\"a\""),
        Row(fresh, "Cache-Control: max-age=0", "validate request INM=\"a\""),
        Row(fresh, "Cache-Control: max-age=x", "validate request INM=\"a\""),
        Row(fresh, "Cache-Control: min-fresh=50", "serve 200"),
        Row(fresh, "Cache-Control: min-fresh=51", "validate request INM=\"a\""),
        Row(fresh, "Cache-Control: min-fresh=x", "validate request INM=\"a\""),
        Row(fresh, "Cache-Control: max-stale=20", after: 120, "serve 200 stale"),
        Row(fresh, "Cache-Control: max-stale=20", after: 121, "validate stale INM=\"a\""),
        Row(fresh, "Cache-Control: max-stale", after: 99_999, "serve 200 stale"),
        Row(fresh, "Cache-Control: max-stale=x", after: 101, "validate stale INM=\"a\""),
        Row(fresh, "Cache-Control: max-stale=99", after: -1, "validate stale INM=\"a\""),
        Row(with("must-revalidate"), "Cache-Control: max-stale", after: 101, "validate stale INM=\"a\""),
        Row(with("proxy-revalidate"), "Cache-Control: max-stale", after: 101, "validate stale INM=\"a\""),
        Row(with("no-cache"), "Cache-Control: max-stale", after: 101, "validate stale INM=\"a\""),
        Row(fresh, "Cache-Control: max-stale, max-age=110", after: 111, "validate stale INM=\"a\""),
        Row(fresh, "Cache-Control: only-if-cached", "serve 200"),
        Row(fresh, "Cache-Control: only-if-cached", after: 100, "504"),
        Row(nil, "Cache-Control: only-if-cached", "504"),
        Row(nil, "Cache-Control: only-if-cached", "504", method: "HEAD"),
        Row(fresh, "Cache-Control: only-if-cached, no-cache", "504"),
        Row(fresh, "Cache-Control: only-if-cached, max-stale=9", after: 105, "serve 200 stale"),
        Row(fresh, "Cache-Control: only-if-cached", "504", method: "POST"),
    ]

    @Test("The directives of a request are obeyed", arguments: directives)
    func decidesDirectives(_ row: Row) { check(row) }

    static let stale: [Row] = [
        Row(with("stale-while-revalidate=10"), "serve 200"),
        Row(with("stale-while-revalidate=10"), after: 109, "swr 200 stale, validate stale INM=\"a\""),
        Row(with("stale-while-revalidate=10"), after: 110, "validate stale INM=\"a\""),
        Row(with("stale-while-revalidate=10"), after: -1, "validate stale INM=\"a\""),
        Row(with("stale-while-revalidate=0"), after: 100, "validate stale INM=\"a\""),
        Row(with("stale-while-revalidate=10, must-revalidate"), after: 101, "validate stale INM=\"a\""),
        Row(with("stale-while-revalidate=10, no-cache"), after: 101, "validate stale INM=\"a\""),
        Row(
            with("stale-while-revalidate=10"), "Cache-Control: max-age=0", after: 101,
            "validate stale INM=\"a\""),
        Row(
            with("stale-while-revalidate=10"), "Cache-Control: no-cache", after: 101,
            "validate stale INM=\"a\""),
        Row(
            with("stale-while-revalidate=10"), "Cache-Control: only-if-cached", after: 101, "serve 200 stale"
        ),
        Row(with("stale-while-revalidate=10"), "Range: bytes=0-1", after: 101, "forward stale"),
        Row(with("stale-if-error=10"), after: 109, "validate stale INM=\"a\" bridged"),
        Row(with("stale-if-error=10"), after: 110, "validate stale INM=\"a\""),
        Row(with("stale-if-error=10, must-revalidate"), after: 105, "validate stale INM=\"a\""),
        Row(with("stale-if-error=10, proxy-revalidate"), after: 105, "validate stale INM=\"a\""),
        Row(with("stale-if-error=10, no-cache"), after: 105, "validate stale INM=\"a\""),
        Row(with("stale-if-error=x"), after: 101, "validate stale INM=\"a\""),
        Row(fresh, "Cache-Control: stale-if-error=10", after: 105, "validate stale INM=\"a\" bridged"),
        Row(with("stale-if-error=10"), "Range: bytes=0-1", after: 105, "forward stale bridged"),
        Row(with("stale-if-error=10"), after: 105, "forward stale bridged", method: "HEAD"),
        Row(with("stale-if-error=10"), after: -1, "validate stale INM=\"a\""),
    ]

    @Test(
        "A stale response is served during revalidation or instead of an error if it allows that",
        arguments: stale)
    func decidesStale(_ row: Row) { check(row) }

    static let modes: [Row] = [
        Row(fresh, "forward request Cache-Control: no-cache", mode: .reload),
        Row(nil, "forward uri-miss Cache-Control: no-cache", mode: .reload),
        Row(fresh, "Cache-Control: x", "forward request", mode: .reload),
        Row(with("stale-if-error=99"), "forward request Cache-Control: no-cache", mode: .reload),
        Row(fresh, "validate request INM=\"a\" CC=max-age=0", mode: .revalidate),
        Row(fresh, after: 100, "validate stale INM=\"a\" CC=max-age=0", mode: .revalidate),
        Row(with("immutable"), "serve 200", mode: .revalidate),
        Row(with("immutable"), after: 100, "validate stale INM=\"a\" CC=max-age=0", mode: .revalidate),
        Row(with("immutable"), "forward request Cache-Control: no-cache", mode: .reload),
        Row(with("immutable, no-cache"), "validate stale INM=\"a\" CC=max-age=0", mode: .revalidate),
        Row(
            with("stale-while-revalidate=9"), after: 101, "validate stale INM=\"a\" CC=max-age=0",
            mode: .revalidate),
        Row(fresh, "serve 200", mode: .preferCache),
        Row(fresh, after: 999_999, "serve 200 stale", mode: .preferCache),
        Row(fresh, after: -1, "serve 200 stale", mode: .preferCache),
        Row(nil, "forward uri-miss", mode: .preferCache),
        Row(with("must-revalidate"), after: 101, "serve 200 stale", mode: .preferCache),
        Row(with("no-cache"), "serve 200", mode: .preferCache),
        Row(fresh, "Cache-Control: no-cache", "validate request INM=\"a\"", mode: .preferCache),
        Row(fresh, "Range: bytes=0-9", after: 101, "serve 206 stale 0..<10", mode: .preferCache),
        Row(fresh, "serve 200", mode: .onlyIfCached),
        Row(fresh, after: 999_999, "serve 200 stale", mode: .onlyIfCached),
        Row(nil, "504", mode: .onlyIfCached),
        Row(with("must-revalidate"), after: 101, "serve 200 stale", mode: .onlyIfCached),
        Row(with("no-cache"), "serve 200", mode: .onlyIfCached),
        Row(fresh, "Cache-Control: no-cache", "504", mode: .onlyIfCached),
        Row(fresh, "504", method: "POST", mode: .onlyIfCached),
        Row(fresh, "forward bypass Cache-Control: no-store", mode: .noStore),
        Row(nil, "forward bypass Cache-Control: no-store", mode: .noStore),
        Row(nil, "forward bypass Cache-Control: no-store", method: "POST", mode: .noStore),
        Row(fresh, "Range: bytes=0-1", "forward bypass Cache-Control: no-store", mode: .noStore),
        Row(fresh, "Cache-Control: x", "forward bypass", mode: .noStore),
        Row(fresh, "Cache-Control: no-store", "forward bypass", mode: .noStore),
        Row(fresh, "Pragma: no-cache", "forward bypass Cache-Control: no-store", mode: .noStore),
        Row(fresh, "serve 200", mode: .cacheThenNetwork),
        Row(fresh, after: 101, "preview 200 stale, validate stale INM=\"a\"", mode: .cacheThenNetwork),
        Row(
            with("must-revalidate"), after: 101, "preview 200 stale, validate stale INM=\"a\"",
            mode: .cacheThenNetwork),
        Row(with("no-cache"), "preview 200, validate stale INM=\"a\"", mode: .cacheThenNetwork),
        Row(bare, after: 101, "preview 200 stale, validate stale", mode: .cacheThenNetwork),
        Row(nil, "forward uri-miss", mode: .cacheThenNetwork),
        Row(fresh, "preview 200, validate request INM=\"a\"", mode: .cacheThenRevalidate),
        Row(fresh, after: 101, "preview 200 stale, validate stale INM=\"a\"", mode: .cacheThenRevalidate),
        Row(with("immutable"), "serve 200", mode: .cacheThenRevalidate),
        Row(
            with("immutable"), after: 101, "preview 200 stale, validate stale INM=\"a\"",
            mode: .cacheThenRevalidate),
        Row(nil, "forward uri-miss", mode: .cacheThenRevalidate),
    ]

    @Test("Each cache mode behaves as documented", arguments: modes)
    func decidesModes(_ row: Row) { check(row) }

    /// The directives of a response, and the age in seconds from which it must not be served without validation.
    static let demands: [(directive: String, from: Int64)] = [
        ("private", 100), ("immutable", 100), ("must-revalidate", 100), ("proxy-revalidate", 100), ("no-cache", 0),
        ("no-cache, must-revalidate", 0), ("max-age=0", 0), ("unterminated=\"", 0),
    ]

    @Test(
        "preferCache and onlyIfCached serve a response of any age with any directive, and no other mode does",
        arguments: CacheMode.allCases)
    func decidesByMode(_ mode: CacheMode) {
        for (directive, limit) in Self.demands {
            for age in [-1, 0, 50, 99, 100, 999_999] as [Int64] {
                let stored = Scene.stored(Self.with(directive))
                let decision = CacheDecision(Scene.request("", mode: mode), variants: [stored], now: Scene.at(age))
                let isFresh = age >= 0 && age < limit
                let isServed =
                    switch mode {
                    case .preferCache, .onlyIfCached: true
                    case .standard, .cacheThenNetwork: isFresh
                    case .revalidate, .cacheThenRevalidate: isFresh && directive == "immutable"
                    case .reload, .noStore: false
                    }
                let words = Scene.words(decision)
                #expect(words.hasPrefix("serve ") == isServed, "\(directive), \(age) s: \(words)")
            }
        }
    }

    static let conditions: [Row] = [
        Row(fresh, "If-None-Match: \"a\"", "serve 304 empty"),
        Row(fresh, "If-None-Match: W/\"a\"", "serve 304 empty"),
        Row(fresh, "If-None-Match: \"x\", \"a\"", "serve 304 empty"),
        Row(fresh, "If-None-Match: \"x\"\nIf-None-Match: \"a\"", "serve 304 empty"),
        Row(fresh, "If-None-Match: *", "serve 304 empty"),
        Row(fresh, "If-None-Match: \"A\"", "serve 200"),
        Row(fresh, "If-None-Match: a", "serve 200"),
        Row(fresh, "If-None-Match:", "serve 200"),
        Row(fresh, "If-None-Match: \"a\"", "serve 304 empty", method: "HEAD"),
        Row(fresh, "If-None-Match: \"a\"", "serve 404", status: 404),
        Row(bare, "If-None-Match: \"a\"", "serve 200"),
        Row(fresh, "If-None-Match: \"a\"", after: 101, "forward stale"),
        Row(with("stale-while-revalidate=9"), "If-None-Match: \"a\"", after: 101, "forward stale"),
        Row(nil, "If-None-Match: \"a\"", "forward uri-miss"),
        Row(dated, "If-Modified-Since: {-9}", "serve 304 empty"),
        Row(dated, "If-Modified-Since: {0}", "serve 304 empty"),
        Row(dated, "If-Modified-Since: {-10}", "serve 200"),
        Row(dated, "If-Modified-Since: once", "serve 200"),
        Row(bare, "If-Modified-Since: {0}", "serve 304 empty"),
        Row(bare, "If-Modified-Since: {-1}", "serve 200"),
        Row(dated, "If-Modified-Since: {0}\nIf-None-Match: \"x\"", "serve 200"),
        Row(dated, "If-Modified-Since: {0}", after: 101, "forward stale"),
        Row(fresh, "If-Match: \"a\"", "forward request"),
        Row(fresh, "If-Unmodified-Since: {0}", "forward request"),
        Row(fresh, "If-Match: \"a\"\nCache-Control: only-if-cached", "504"),
    ]

    @Test(
        "A condition of the caller is evaluated on a fresh response, and is otherwise sent unchanged",
        arguments: conditions)
    func decidesConditions(_ row: Row) { check(row) }

    static let ranges: [Row] = [
        Row(fresh, "Range: bytes=0-9", "serve 206 0..<10"),
        Row(fresh, "Range: bytes=990-", "serve 206 990..<1000"),
        Row(fresh, "Range: bytes=-10", "serve 206 990..<1000"),
        Row(fresh, "Range: bytes=-9999", "serve 206 0..<1000"),
        Row(fresh, "Range: bytes=999-99999999999999999", "serve 206 999..<1000"),
        Row(fresh, "Range: bytes=1000-", "serve 416 empty"),
        Row(fresh, "Range: bytes=-0", "serve 416 empty"),
        Row(fresh, "Range: bytes=5-4", "serve 200"),
        Row(fresh, "Range: bytes=", "serve 200"),
        Row(fresh, "Range: bytes=x", "serve 200"),
        Row(fresh, "Range: items=0-1", "serve 200"),
        Row(fresh, "Range: bytes=0-1\nRange: bytes=2-3", "serve 200"),
        Row(fresh, "Range: bytes=0-1, 5-6", "serve 200"),
        Row(fresh, "Range: bytes=0-1, 5000-", "serve 206 0..<2"),
        Row(fresh, "Range: bytes=5000-, 6000-", "serve 416 empty"),
        Row(fresh, "Range: bytes=0-1", "serve 404", status: 404),
        Row(fresh, "Range: bytes=0-1", "serve 200 empty", method: "HEAD"),
        Row(fresh, "Range: bytes=0-1", after: 101, "forward stale"),
        Row(nil, "Range: bytes=0-1", "forward uri-miss"),
        Row(fresh + "\nContent-Encoding: gzip", "Range: bytes=0-1", "forward vary-miss"),
        Row(
            fresh + "\nContent-Encoding: gzip", "Range: bytes=0-1\nAccept-Encoding: gzip", "forward miss"),
        Row(fresh, "Range: bytes=0-1\nIf-Range: \"a\"", "serve 206 0..<2"),
        Row(fresh, "Range: bytes=0-1\nIf-Range: \"b\"", "serve 200"),
        Row(fresh, "Range: bytes=0-1\nIf-Range: W/\"a\"", "serve 200"),
        Row(bare + "\nETag: W/\"a\"", "Range: bytes=0-1\nIf-Range: W/\"a\"", "serve 200"),
        Row(dated, "Range: bytes=0-1\nIf-Range: {-9}", "serve 206 0..<2"),
        Row(dated, "Range: bytes=0-1\nIf-Range: {-8}", "serve 200"),
        Row(bare + "\nLast-Modified: {0}", "Range: bytes=0-1\nIf-Range: {0}", "serve 200"),
        Row(fresh, "Range: bytes=0-1\nIf-Range: junk", "serve 200"),
        Row(fresh, "If-Range: \"a\"", "serve 200"),
        Row(fresh, "Range: bytes=0-1\nIf-None-Match: \"a\"", "serve 304 empty"),
        Row(fresh, "Range: bytes=0-1\nIf-None-Match: \"b\"", "serve 206 0..<2"),
    ]

    @Test("Ranges are served from complete and fresh responses as in RFC 9110", arguments: ranges)
    func decidesRanges(_ row: Row) { check(row) }

    private func check(_ row: Row) {
        let variants = row.stored.map { [Scene.stored($0, status: row.status)] } ?? []
        let request = Scene.request(row.request, method: row.method, mode: row.mode)
        let decision = CacheDecision(request, variants: variants, now: Scene.at(row.after))
        #expect(Scene.words(decision) == row.words)
    }

    // MARK: Several variants

    private static func variant(_ language: String, _ text: String) -> StoredVariant {
        Scene.stored(text, selections: [.init(name: "accept-language", value: language)])
    }

    @Test("The matching variant is served, and the entity tags of all variants are offered")
    func severalVariants() {
        let variants = [
            Self.variant("en", Self.fresh),
            Self.variant("de", "Date: {0}\nETag: \"b\"\nCache-Control: max-age=10"),
            Self.variant("fr", "Date: {-1}\nLast-Modified: {-9}"),
            Self.variant("es", "Date: {-2}\nETag: W/\"c\""),
        ]
        func words(_ language: String, _ more: String = "") -> String {
            let request = Scene.request("Accept-Language: \(language)" + more)
            return Scene.words(CacheDecision(request, variants: variants, now: Scene.at(50)))
        }
        #expect(words("en") == "serve 200")
        #expect(words("de") == "validate stale INM=\"b\", \"a\", W/\"c\"")
        #expect(words("fr") == "validate stale IMS")
        #expect(words("it") == "validate vary-miss INM=\"b\", \"a\", W/\"c\"")
        #expect(words("it", "\nIf-None-Match: \"x\"") == "forward vary-miss")
        #expect(words("it", "\nRange: bytes=0-1") == "forward vary-miss")
        #expect(words("it", "\nCache-Control: only-if-cached") == "504")
    }

    @Test("Alternating between two languages ten times sends two requests")
    func alternatingLanguages() {
        var variants: [StoredVariant] = []
        var requests = 0
        for turn in 0..<10 {
            let request = Scene.request("Accept-Language: " + (turn.isMultiple(of: 2) ? "en" : "de"))
            guard
                Scene.words(CacheDecision(request, variants: variants, now: Scene.at(1))).hasPrefix("serve")
                    == false
            else { continue }
            requests += 1
            let text = "Date: {0}\nVary: Accept-Language\nETag: \"\(turn)\"\nCache-Control: max-age=60"
            if case .store(let head) = StorageDecision(
                Scene.response(200, text), to: request, requestTime: Scene.at(0), responseTime: Scene.at(0))
            {
                variants.append(StoredVariant(head: head, bodyLength: 1))
            }
        }
        #expect(requests == 2)
    }

    @Test("Entity tags beyond four thousand bytes are not offered")
    func longTags() {
        let variants = (0..<8).map {
            Self.variant("\($0)", "Date: {\($0)}\nETag: \"\($0)" + String(repeating: "x", count: 1000) + "\"")
        }
        let request = Scene.request("Accept-Language: 7")
        guard case .validate(let plan) = CacheDecision(request, variants: variants, now: Scene.at(50)) else {
            Issue.record("it is not validated")
            return
        }
        #expect(plan.offered == [7, 6, 5, 4])
        #expect((plan.fields.firstValue(of: "If-None-Match")?.utf8.count ?? 0) <= 4096)
    }

    // MARK: Served responses

    private func served(_ stored: String, _ request: String = "", after: Int64 = 50) -> CachedResponse? {
        let variants = [Scene.stored(stored)]
        let decision = CacheDecision(Scene.request(request), variants: variants, now: Scene.at(after))
        if case .serve(let answer) = decision { return answer }
        return nil
    }

    @Test("A served response has its current age instead of the received one")
    func servedAge() throws {
        let answer = try #require(served("Date: {0}\nAge: 5\nAge: 7\nCache-Control: max-age=100"))
        #expect(
            Scene.text(answer.head.fields)
                == "Date: Fri, 15 Jan 2027 08:00:00 GMT\nCache-Control: max-age=100\nAge: 55")
        #expect(answer.status.text == "martlet; hit; ttl=45")
    }

    @Test("Fields that no-cache names are not served without validation")
    func withheldFields() throws {
        let answer = try #require(
            served("Date: {0}\nSet-Cookie: a=b\nX: y\nCache-Control: max-age=100, no-cache=\"Set-Cookie, x\"")
        )
        #expect(!answer.head.fields.contains("Set-Cookie") && !answer.head.fields.contains("X"))
    }

    @Test("A partial response has its Content-Range and Content-Length")
    func partFields() throws {
        let answer = try #require(served(Self.fresh + "\nContent-Length: 1000", "Range: bytes=10-19"))
        #expect(answer.head.fields.values(of: "Content-Range") == ["bytes 10-19/1000"])
        #expect(answer.head.fields.values(of: "Content-Length") == ["10"])
        #expect(answer.head.fields.values(of: "ETag") == ["\"a\""])
        let none = try #require(served(Self.fresh + "\nContent-Type: a/b", "Range: bytes=1000-"))
        #expect(none.head.fields.values(of: "Content-Range") == ["bytes */1000"])
        #expect(none.head.fields.values(of: "Content-Length") == ["0"])
        #expect(!none.head.fields.contains("Content-Type"))
    }

    @Test("A 304 has only the fields that RFC 9110 names")
    func notModifiedFields() throws {
        let answer = try #require(
            served(Self.fresh + "\nContent-Type: a/b\nVary: X\nX-Own: 1", "If-None-Match: \"a\""))
        #expect(answer.head.fields.map(\.name) == ["Date", "ETag", "Cache-Control", "Vary", "Age"])
    }

    @Test("Requests with no-store, ranges or conditions do not share their response")
    func shareable() {
        func isShareable(_ text: String, _ method: String = "GET") -> Bool? {
            let request = Scene.request(text, method: method)
            let decision = CacheDecision(request, variants: [], now: Scene.at(0))
            if case .forward = decision { return request.isShareable }
            return nil
        }
        #expect(isShareable("") == true)
        #expect(isShareable("Cache-Control: no-cache") == true)
        #expect(isShareable("", "HEAD") == false)
        #expect(isShareable("", "POST") == false)
        #expect(isShareable("Cache-Control: no-store") == false)
        #expect(isShareable("Range: bytes=0-1") == false)
        #expect(isShareable("If-None-Match: \"a\"") == false)
    }
}
