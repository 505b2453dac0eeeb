import MartletCache
import MartletWire
import Testing

@Suite("Freshness of a stored response")
struct FreshnessTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let text: String
        let status: Int
        let after: Int64
        let delay: Int64
        let isFresh: Bool
        let lifetime: Int64?
        let age: Int64?
        var testDescription: String { "\(status), \(text.debugDescription), after \(after) s" }

        init(
            _ text: String, _ isFresh: Bool, after: Int64 = 10, delay: Int64 = 0, status: Int = 200,
            lifetime: Int64? = nil, age: Int64? = nil
        ) {
            self.text = text
            self.isFresh = isFresh
            self.after = after
            self.delay = delay
            self.status = status
            self.lifetime = lifetime
            self.age = age
        }
    }

    static let lifetimes: [Row] = [
        Row("Date: {0}\nCache-Control: max-age=3600", true, lifetime: 3600, age: 10),
        Row("Date: {0}\nCache-Control: max-age=10", false, after: 10),
        Row("Date: {0}\nCache-Control: max-age=10", true, after: 9),
        Row("Cache-Control: max-age=0", false, after: 0),
        Row("Cache-Control: max-age=99999999999999", true, after: 2_147_483_647, lifetime: 1 << 31),
        Row("Cache-Control: max-age=3600\nExpires: {-100}\nDate: {0}", true, lifetime: 3600),
        Row("Cache-Control: max-age=1\nExpires: {3600}\nDate: {0}", false),
        Row("Cache-Control: max-age=x\nExpires: {3600}\nDate: {0}", false),
        Row("Cache-Control: s-maxage=1, max-age=3600", true, lifetime: 3600),
        Row("Cache-Control: s-maxage=3600, max-age=1", false),
        Row("Cache-Control: s-maxage=3600", false, lifetime: 0),
        Row("Cache-Control: max-age=3600, ext=\"open", false, lifetime: 0),
        Row("Date: {0}\nExpires: {3600}", true, lifetime: 3600),
        Row("Date: {0}\nExpires: {0}", false, after: 0),
        Row("Date: {0}\nExpires: {-3600}", false, lifetime: 0),
        Row("Date: {0}\nExpires: 0", false, after: 0, lifetime: 0),
        Row("Date: {0}\nExpires: -1\nLast-Modified: {-864000}", false, after: 0, lifetime: 0),
        Row("Date: {0}\nExpires:\nLast-Modified: {-864000}", false, after: 0),
        Row("Date: {0}\nExpires: 3600", false),
        Row("Date: {0}\nExpires: fri, 15 jan 2027 09:00:00 gmt", true, lifetime: 3600),
        Row("Date: FRI, 15 JAN 2027 08:00:00 GMT\nExpires: {3600}", true, lifetime: 3600),
        Row("Date: {0}\nExpires: Fri, 15 Jan 2027 09:00:00 +0100", false),
        Row("Date: {0}\nExpires: Fri, 15 Jan 2027 9:00:00 GMT", false),
        Row("Date: {0}\nExpires: Fri, 15 Jan 2027 09:00:00", false),
        Row("Date: {0}\nExpires: Fri, 15 Foo 2027 09:00:00 GMT", false),
        Row("Date: {0}\nExpires: Friday, 15-Jan-27 09:00:00 GMT", true, lifetime: 3600),
        Row("Date: {0}\nExpires: Fri Jan 15 09:00:00 2027", true, lifetime: 3600),
        Row("Date: Friday, 15-Jan-27 08:00:00 GMT\nExpires: {60}", true, lifetime: 60),
        Row("Date: {0}\nExpires: {3600}\nExpires: {3600}", true, lifetime: 3600),
        Row("Date: {0}\nExpires: {3600}\nExpires: {7200}", false, lifetime: 0),
        Row("Date: {0}\nExpires: Fri, 31 Dec 9999 23:59:59 GMT", true, lifetime: 1 << 31),
        Row("Expires: {3600}", true, lifetime: 3600),
        Row("Date: nonsense\nExpires: {3600}", true, lifetime: 3600, age: 10),
        // The server's clock is an hour ahead, and its dates are compared with each other.
        Row("Date: {3600}\nExpires: {3660}", true, lifetime: 60, age: 10),
        Row("Date: {3600}\nExpires: {3660}", false, after: 60),
    ]

    @Test(
        "The lifetime is max-age, or else Expires minus Date, and s-maxage is ignored", arguments: lifetimes)
    func lifetime(_ row: Row) { check(row) }

    static let ages: [Row] = [
        Row("Date: {0}\nCache-Control: max-age=100", true, after: 99, age: 99),
        Row("Date: {-60}\nCache-Control: max-age=100", true, after: 39, age: 99),
        Row("Date: {-60}\nCache-Control: max-age=100", false, after: 40, age: 100),
        Row("Date: {0}\nAge: 60\nCache-Control: max-age=100", false, after: 40, age: 100),
        Row("Date: {-90}\nAge: 60\nCache-Control: max-age=100", false, after: 10, age: 100),
        Row("Date: {-30}\nAge: 60\nCache-Control: max-age=100", true, after: 10, age: 70),
        Row("Date: {0}\nAge: 0\nCache-Control: max-age=100", true, after: 0, age: 0),
        Row("Date: {0}\nCache-Control: max-age=100", true, after: 0, delay: 30, age: 30),
        Row("Date: {0}\nAge: 60\nCache-Control: max-age=100", false, after: 10, delay: 30, age: 100),
        Row("Date: {0}\nAge: 7200, 0\nCache-Control: max-age=3600", false, after: 0, age: 7200),
        Row("Date: {0}\nAge: 0, 7200\nCache-Control: max-age=3600", true, after: 0, age: 0),
        Row("Date: {0}\nAge: 7200\nAge: 0\nCache-Control: max-age=3600", false, after: 0),
        Row("Date: {0}\nAge: 0\nAge: 7200\nCache-Control: max-age=3600", true, after: 0),
        Row("Date: {0}\nAge: -7200\nCache-Control: max-age=3600", true, after: 0, age: 0),
        Row("Date: {0}\nAge: 7200.0\nCache-Control: max-age=3600", true, after: 0, age: 0),
        Row("Date: {0}\nAge: abc\nCache-Control: max-age=3600", true, after: 0, age: 0),
        Row("Date: {0}\nAge: foo, 7200\nCache-Control: max-age=3600", true, after: 0, age: 0),
        Row("Date: {0}\nAge: 7200;foo=bar\nCache-Control: max-age=3600", true, after: 0, age: 0),
        Row("Date: {0}\nAge:\nCache-Control: max-age=3600", true, after: 0, age: 0),
        Row(
            "Date: {0}\nAge: 99999999999999999999999\nCache-Control: max-age=3600", false, after: 0,
            age: 1 << 31),
        Row("Date: {-100}\nDate: {-200}\nCache-Control: max-age=100", true, after: 0, age: 0),
        Row(
            "Date: Mon, 01 Jan 0001 00:00:00 GMT\nCache-Control: max-age=99999999999", false, after: 0,
            age: 1 << 31),
        Row("Date: Fri, 31 Dec 9999 23:59:59 GMT\nCache-Control: max-age=10", true, after: 5, age: 5),
    ]

    @Test("The age is the larger of the Date-based and the Age-based value, plus the resident time", arguments: ages)
    func age(_ row: Row) { check(row) }

    static let heuristics: [Row] =
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].map {
            Row("Date: {0}\nLast-Modified: {-1000}", true, after: 99, status: $0, lifetime: 100)
        }
        + [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599].map {
            Row("Date: {0}\nLast-Modified: {-1000}", false, status: $0, lifetime: 0)
        } + [
            Row("Date: {0}\nLast-Modified: {-1000}", false, after: 100),
            Row("Date: {0}\nLast-Modified: {-1000}\nCache-Control: public", true, status: 302, lifetime: 100),
            Row("Date: {0}\nLast-Modified: {-864000}", true, after: 86_399, lifetime: 86_400),
            Row("Date: {0}\nLast-Modified: {-86400000}", false, after: 86_400, lifetime: 86_400),
            Row("Date: {0}\nLast-Modified: {-1}", false, after: 0, lifetime: 0),
            Row("Date: {0}\nLast-Modified: {1000}", false, after: 0, lifetime: 0),
            Row("Date: {0}\nLast-Modified: yesterday", false, after: 0, lifetime: 0),
            Row("Date: {0}", false, after: 0, lifetime: 0),
            Row("", false, after: 0, lifetime: 0),
            Row("Date: {0}\nLast-Modified: {-1000}\nCache-Control: max-age=5", false, lifetime: 5),
        ]

    @Test(
        "Without a lifetime, a tenth of the time since Last-Modified is used, at most a day",
        arguments: heuristics)
    func heuristic(_ row: Row) { check(row) }

    private func check(_ row: Row) {
        let stored = Scene.stored(row.text, status: row.status, delay: row.delay)
        let freshness = Freshness(of: stored.head, now: Scene.at(row.after))
        #expect(freshness.isFresh == row.isFresh, "\(freshness)")
        if let lifetime = row.lifetime { #expect(freshness.lifetime == lifetime) }
        if let age = row.age { #expect(freshness.age == age) }
        #expect(freshness.isFresh == (freshness.stalenessInMilliseconds == 0 && freshness.timeToLive > 0))
    }

    @Test("A clock that was set back makes a response stale, whatever its lifetime is")
    func clockSetBack() {
        let head = Scene.stored("Date: {0}\nCache-Control: max-age=31536000").head
        let freshness = Freshness(of: head, now: Scene.at(-1))
        #expect(freshness.isClockSetBack && !freshness.isFresh)
        #expect(freshness.stalenessInMilliseconds == .max)
        let during = Scene.stored("Cache-Control: max-age=31536000", delay: -5).head
        #expect(!Freshness(of: during, now: Scene.at(1)).isFresh)
    }

    @Test("No time, however distant, traps", arguments: [Int64.min, -1, 0, Int64.max])
    func extremes(_ moment: Int64) {
        for text in [
            "", "Date: {0}", "Age: 99999999999999999999\nCache-Control: max-age=99999999999999999999",
        ] {
            for other in [Int64.min, 0, Int64.max] {
                var head = Scene.stored(text).head
                head.requestTime = WallTime(milliseconds: moment)
                head.responseTime = WallTime(milliseconds: other)
                for now in [Int64.min, 0, Int64.max] {
                    let freshness = Freshness(of: head, now: WallTime(milliseconds: now))
                    #expect(freshness.age >= 0 && freshness.lifetime >= 0)
                }
            }
        }
    }

    @Test("Optional heuristics keep responses without a lifetime fresh for ten minutes and images for seven days")
    func defaultFreshness() {
        let rules = DefaultFreshness.tenMinutesAndImagesSevenDays
        func lifetime(_ text: String, status: Int = 200, _ rules: DefaultFreshness) -> Int64 {
            Freshness(of: Scene.stored(text, status: status).head, now: Scene.at(0), defaults: rules).lifetime
        }
        #expect(lifetime("Content-Type: image/png", .none) == 0)
        #expect(CachePolicy().defaults == .none)
        #expect(lifetime("Content-Type: image/png", rules) == 604_800)
        #expect(lifetime("Content-Type: IMAGE/JPEG ; q=1", rules) == 604_800)
        #expect(lifetime("Content-Type: text/html", rules) == 600)
        #expect(lifetime("Content-Type: imagery/png", rules) == 600)
        #expect(lifetime("", rules) == 600)
        #expect(lifetime("", .tenMinutes) == 600)
        #expect(lifetime("Date: {0}\nLast-Modified: {-100}", rules) == 600)
        // The response's own directives take precedence, and errors are not stored.
        #expect(lifetime("Content-Type: image/png\nCache-Control: max-age=5", rules) == 5)
        #expect(lifetime("Content-Type: image/png\nExpires: 0", rules) == 0)
        #expect(lifetime("Content-Type: image/png", status: 500, rules) == 0)
        let one = DefaultFreshness([.init(type: "Application/JSON", seconds: .max)])
        #expect(lifetime("Content-Type: application/json", one) == 1 << 31)
        #expect(lifetime("Content-Type: text/html", one) == 0)
        let suffix = DefaultFreshness([
            .init(type: "application/*+json", seconds: 7), .init(type: "no range", seconds: 8),
        ])
        #expect(lifetime("Content-Type: application/problem+json; charset=utf-8", suffix) == 7)
        #expect(lifetime("Content-Type: application/xml", suffix) == 0 && lifetime("", suffix) == 0)
    }
}
