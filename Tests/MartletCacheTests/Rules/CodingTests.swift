import MartletCache
import MartletWire
import Testing

@Suite("Content codings of stored responses")
struct CodingTests {
    private static let base = "Date: {0}\nCache-Control: max-age=100\nETag: W/\"a\""

    static let rows: [(String, String, Bool)] = [
        ("gzip", "", false),
        ("gzip", "Accept-Encoding:", false),
        ("gzip", "Accept-Encoding: identity", false),
        ("gzip", "Accept-Encoding: br", false),
        ("gzip", "Accept-Encoding: gzip", true),
        ("GZip", "Accept-Encoding: deflate, GZIP", true),
        ("x-gzip", "Accept-Encoding: gzip", true),
        ("gzip", "Accept-Encoding: x-gzip", true),
        ("gzip", "Accept-Encoding: br\nAccept-Encoding: gzip", true),
        ("gzip", "Accept-Encoding: gzip;q=0", false),
        ("gzip", "Accept-Encoding: gzip ; q=0.000", false),
        ("gzip", "Accept-Encoding: gzip;q=0.001", true),
        ("gzip", "Accept-Encoding: gzip;Q=1", true),
        ("gzip", "Accept-Encoding: *", true),
        ("gzip", "Accept-Encoding: *;q=0", false),
        ("gzip", "Accept-Encoding: *, gzip;q=0", false),
        ("gzip", "Accept-Encoding: *;q=0, gzip", true),
        ("gzip, br", "Accept-Encoding: gzip", false),
        ("gzip, br", "Accept-Encoding: gzip, br", true),
        ("gzip\nContent-Encoding: br", "Accept-Encoding: gzip", false),
        ("identity", "", true),
        ("aes128gcm", "", true),
        ("", "", true),
    ]

    @Test(
        "A response in a coding that the request does not accept is neither served nor validated",
        arguments: rows)
    func takes(stored: String, asked: String, isTaken: Bool) {
        let variant = Scene.stored(CodingTests.base + "\nContent-Encoding: \(stored)")
        let request = Scene.request(asked)
        #expect(VariantRule.matching(request, [variant]) == (isTaken ? [0] : []))
        let fresh = CacheDecision(request, variants: [variant], now: Scene.at(50))
        #expect(Scene.words(fresh) == (isTaken ? "serve 200" : "forward vary-miss"))
        let stale = CacheDecision(request, variants: [variant], now: Scene.at(150))
        #expect(
            Scene.words(stale) == (isTaken ? "validate stale INM=W/\"a\"" : "forward vary-miss"))
    }

    @Test("Only variants that the request accepts are offered for validation")
    func offered() {
        let variants = [
            Scene.stored(
                CodingTests.base + "\nContent-Encoding: gzip",
                selections: [.init(name: "accept-encoding", value: "gzip")]),
            Scene.stored(
                "Date: {0}\nCache-Control: max-age=100\nETag: \"b\"",
                selections: [.init(name: "accept-encoding", value: "identity")]),
        ]
        func plan(_ asked: String) -> String {
            Scene.words(CacheDecision(Scene.request(asked), variants: variants, now: Scene.at(50)))
        }
        #expect(plan("") == "validate vary-miss INM=\"b\"")
        #expect(plan("Accept-Encoding: gzip, br") == "validate vary-miss INM=\"b\", W/\"a\"")
    }

    @Test("A 304 that names an unoffered variant in an unaccepted coding repeats the request")
    func named() {
        let variants = [
            Scene.stored(
                CodingTests.base + "\nContent-Encoding: gzip",
                selections: [.init(name: "accept-encoding", value: "gzip")]),
            Scene.stored("Date: {0}\nCache-Control: max-age=100\nETag: \"b\""),
        ]
        let request = Scene.request()
        let decision = CacheDecision(request, variants: variants, now: Scene.at(150))
        let decider = CacheUpdateRule(request, after: decision, variants: variants)
        let decided = decider.received(
            Scene.response(304, "ETag: W/\"a\""), requestTime: Scene.at(150), responseTime: Scene.at(150))
        #expect(decided.delivery == .repeatUnconditionally && decided.freshened.isEmpty)
    }

    @Test(
        "A 304 never changes whether the stored entity tag is weak or strong",
        arguments: [
            ("W/\"a\"", "\"a\"", "W/\"a\""), ("W/\"a\"", "W/\"a\"", "W/\"a\""),
            ("\"a\"", "W/\"a\"", "W/\"a\""),
        ])
    func weakness(stored: String, new: String, kept: String) throws {
        let variant = Scene.stored("Date: {0}\nCache-Control: max-age=100\nETag: \(stored)")
        let request = Scene.request()
        let decision = CacheDecision(request, variants: [variant], now: Scene.at(150))
        let decider = CacheUpdateRule(request, after: decision, variants: [variant])
        let decided = decider.received(
            Scene.response(304, "ETag: \(new)"), requestTime: Scene.at(150), responseTime: Scene.at(150))
        let head = try #require(decided.freshened.first).head
        #expect(head.fields.values(of: "ETag") == [kept])
    }
}
