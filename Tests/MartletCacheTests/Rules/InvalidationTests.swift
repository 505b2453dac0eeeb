import MartletCache
import MartletWire
import Testing

@Suite("Invalidation of stored responses")
struct InvalidationTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let method: String
        let status: Int
        let fields: String
        let targets: [String]
        var testDescription: String { "\(method) \(status) \(fields.debugDescription)" }

        init(_ method: String, _ status: Int, _ fields: String, _ targets: [String]) {
            self.method = method
            self.status = status
            self.fields = fields
            self.targets = targets.map { "https://example.com" + $0 }
        }
    }

    static let rows: [Row] =
        ["POST", "PUT", "DELETE", "PATCH", "M-UNKNOWN", "get"].map { Row($0, 200, "", ["/a"]) }
        + ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY"].map { Row($0, 200, "Location: /b", []) }
        + [201, 204, 301, 303, 399].map { Row("POST", $0, "", ["/a"]) }
        + [199, 400, 404, 409, 500, 503].map { Row("POST", $0, "Location: /b", []) } + [
            Row("POST", 201, "Location: /b", ["/a", "/b"]),
            Row("POST", 200, "Content-Location: /c", ["/a", "/c"]),
            Row("POST", 200, "Location: /b\nContent-Location: /c", ["/a", "/b", "/c"]),
            Row("POST", 200, "Location: /a\nContent-Location: /a", ["/a"]),
            Row("POST", 200, "Location: https://EXAMPLE.com:443/b#x", ["/a", "/b"]),
            Row("POST", 200, "Location: https://example.com", ["/a", "/"]),
            Row("POST", 200, "Location: https://example.com:8443/b", ["/a"]),
            Row("POST", 200, "Location: http://example.com/b", ["/a"]),
            Row("POST", 200, "Location: https://evil.example/b", ["/a"]),
            Row("POST", 200, "Location: https://example.com@evil.example/b", ["/a"]),
            Row("POST", 200, "Location: broken", ["/a"]),
        ]

    @Test(
        "A successful unsafe method invalidates its URL and the URLs of its origin that it names",
        arguments: rows)
    func targets(_ row: Row) {
        let targets = InvalidationRule.targets(
            method: row.method, url: "https://user@Example.com/a#top",
            response: Scene.response(row.status, row.fields)
        ) { reference in
            if reference == "broken" { return nil }
            return reference.hasPrefix("/") ? "https://example.com" + reference : reference
        }
        #expect(targets == row.targets)
    }

    @Test("A response that was requested before an invalidation is not stored after it")
    func invalidations() {
        var invalidations = InvalidationLog()
        let before = invalidations.epoch
        #expect(invalidations.holds(before, for: "a"))
        invalidations.invalidate("a")
        let after = invalidations.epoch
        #expect(!invalidations.holds(before, for: "a") && invalidations.holds(before, for: "b"))
        #expect(invalidations.holds(after, for: "a"))
        invalidations.invalidateAll()
        #expect(!invalidations.holds(after, for: "a") && !invalidations.holds(after, for: "b"))
        #expect(invalidations.holds(invalidations.epoch, for: "a"))
    }

    @Test("A response that is being received is not stored after a later one of its key that is not stored")
    func superseded() {
        var invalidations = InvalidationLog()
        let (key, other) = (CacheKey(url: "a"), CacheKey(url: "a", partition: "p"))
        let before = invalidations.epoch
        // Nothing is being received, so there is nothing to record.
        invalidations.supersede(key)
        #expect(invalidations.holds(before, for: key))
        invalidations.begin(key)
        invalidations.begin(key)
        invalidations.supersede(key)
        let after = invalidations.epoch
        #expect(!invalidations.holds(before, for: key) && invalidations.holds(before, for: other))
        #expect(invalidations.holds(before, for: "a") && invalidations.holds(after, for: key))
        invalidations.end(key)
        #expect(!invalidations.holds(before, for: key))
        invalidations.end(key)
        #expect(invalidations.holds(before, for: key))
        invalidations.invalidate("a")
        #expect(!invalidations.holds(before, for: key) && !invalidations.holds(after, for: other))
    }

    @Test("The invalidation log stays within its limit, and URLs that it dropped count as invalidated")
    func boundedLog() {
        var invalidations = InvalidationLog(limit: 4)
        let start = invalidations.epoch
        for number in 0..<1000 { invalidations.invalidate("u\(number % 7)") }
        let recent = invalidations.epoch
        for number in 0..<3 { invalidations.invalidate("v\(number)") }
        #expect(!invalidations.holds(start, for: "never named"))
        #expect(invalidations.holds(recent, for: "never named") && !invalidations.holds(recent, for: "v0"))
    }

    @Test("Repeated invalidations of one URL do not evict others before the limit")
    func repeatedInvalidation() {
        var invalidations = InvalidationLog(limit: 4)
        let start = invalidations.epoch
        for _ in 0..<100 { invalidations.invalidate("a") }
        #expect(!invalidations.holds(start, for: "a") && invalidations.holds(start, for: "b"))
    }
}
