import MartletCache
import MartletWire
import Testing

@Suite("Selection of stored responses by Vary")
struct VaryTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let vary: String
        let first: String
        let second: String
        let matches: Bool
        var testDescription: String {
            "\(vary.debugDescription): \(first.debugDescription), \(second.debugDescription)"
        }

        init(_ vary: String, _ first: String, _ second: String, _ matches: Bool) {
            self.vary = vary
            self.first = first
            self.second = second
            self.matches = matches
        }
    }

    static let rows: [Row] = [
        Row("", "Foo: 1", "Foo: 2", true),
        Row("Vary:", "Foo: 1", "Foo: 2", true),
        Row("Vary: Foo", "Foo: 1", "Foo: 1", true),
        Row("Vary: Foo", "Foo: 1", "foo: 1", true),
        Row("Vary: FOO", "Foo: 1", "Foo: 1", true),
        Row("Vary: Foo", "Foo: 1", "Foo: 2", false),
        Row("Vary: Foo", "Foo: a", "Foo: A", false),
        Row("Vary: Foo", "Foo: 1", "", false),
        Row("Vary: Foo", "", "Foo: 1", false),
        Row("Vary: Foo", "", "Foo:", false),
        Row("Vary: Foo", "", "", true),
        Row("Vary: Foo", "", "Bar: 1", true),
        Row("Vary: Foo", "Foo: 1\nFoo: 2", "Foo: 1, 2", true),
        Row("Vary: Foo", "Foo: 1\nFoo: 2", "Foo: 2\nFoo: 1", false),
        Row("Vary: Foo", "Foo: 1,2", "Foo: 1, 2", false),
        Row("Vary: Foo, Bar", "Foo: 1\nBar: 2", "Bar: 2\nFoo: 1", true),
        Row("Vary: Foo, Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 3", false),
        Row("Vary: Foo, Bar", "Foo: 1\nBar: 2", "Foo: 1", false),
        Row("Vary: Foo\nVary: Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 3", false),
        Row("Vary: Foo, foo,, FOO", "Foo: 1", "Foo: 1", true),
        Row("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: en,de", true),
        Row("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: EN , De", true),
        Row(
            "Vary: Accept-Language", "Accept-Language: en\nAccept-Language: de", "Accept-Language: en, de",
            true),
        Row("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", false),
        Row("Vary: Accept-Language", "Accept-Language: en;q=0.5", "Accept-Language: en; q=0.5", true),
        Row("Vary: Accept-Language", "Accept-Language: en", "Accept-Language: en-GB", false),
        Row("Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: BR,gzip", true),
        Row("Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip, br", false),
        Row("Vary: Accept-Encoding", "Accept-Encoding: gzip", "", false),
        Row("Vary: Accept-Charset", "Accept-Charset: utf-8, latin1", "Accept-Charset: LATIN1, utf-8", true),
        Row("Vary: Accept", "Accept: text/html", "Accept: text/html", true),
        Row("Vary: Accept", "Accept: text/html, a/b", "Accept: a/b, text/html", false),
        Row("Vary: Authorization", "Authorization: x", "Authorization: x", true),
        Row("Vary: Authorization", "Authorization: x", "Authorization: y", false),
        Row("Vary: Cookie", "Cookie: a=1", "Cookie: a=2", false),
        Row("Vary: Cookie", "Cookie: a=1", "Cookie: a=1", true),
        Row("Vary: Cookie", "", "Cookie: a=1", false),
    ]

    @Test("A stored response matches requests with equal values of its Vary fields", arguments: rows)
    func matching(_ row: Row) {
        let keyedDigest: @Sendable (String) -> String = { "<\($0)>" }
        let first = Scene.request(row.first, partition: "p", keyedDigest: keyedDigest)
        let second = Scene.request(row.second, partition: "p", keyedDigest: keyedDigest)
        guard let selections = VaryRule(Scene.fields(row.vary)).selections(of: first) else {
            Issue.record("it is not stored at all")
            return
        }
        let stored = Scene.stored("", selections: selections, partition: "p")
        #expect(VariantRule.matching(first, [stored]) == [0])
        #expect(VariantRule.matching(second, [stored]) == (row.matches ? [0] : []))
    }

    static let rejected: [String] = [
        "*", "Foo, *", "*, Foo", "a b", "a;b", "\"Foo\"", "Fo\u{E9}", String(repeating: "x", count: 257),
        (0..<33).map { "f\($0)" }.joined(separator: ","),
    ]

    @Test(
        "A response that varies on everything or on an invalid name matches no other request", arguments: rejected)
    func everything(_ vary: String) {
        #expect(VaryRule(FieldBlock([("Vary", vary)])) == .everything)
        #expect(VaryRule(FieldBlock([("Vary", vary)])).selections(of: Scene.request()) == nil)
    }

    @Test("A response with a selecting field that is too long is not stored")
    func longSelection() {
        let request = Scene.request("Foo: " + String(repeating: "x", count: VaryRule.selectionLimit + 1))
        #expect(VaryRule(FieldBlock([("Vary", "Foo")])).selections(of: request) == nil)
    }

    @Test("The matching variant with the newest Date is selected, and then the one that arrived last")
    func newest() {
        let variants = [
            Scene.stored("Date: {-10}", came: 9), Scene.stored("Date: {-5}"),
            Scene.stored("Date: {-5}", came: 1),
            Scene.stored("Date: {-7}", came: 99),
        ]
        #expect(VariantRule.matching(Scene.request(), variants) == [2, 1, 3, 0])
    }

    @Test("A response of another partition is never selected, even if it is stored at the same place")
    func foreignKey() {
        #expect(VariantRule.matching(Scene.request(), [Scene.stored("", partition: "other")]).isEmpty)
        #expect(VariantRule.matching(Scene.request(partition: "other"), [Scene.stored("")]).isEmpty)
    }

    @Test("A response to a request with credentials is selected only if it is public")
    func formerlyShared() {
        let open = Scene.stored("Cache-Control: public", wasAuthorized: true)
        let closed = Scene.stored("Cache-Control: max-age=60", wasAuthorized: true)
        #expect(VariantRule.matching(Scene.request(), [open, closed]) == [0])
    }

    @Test("A ninth variant replaces the oldest, and an equal variant replaces its predecessor")
    func variantLimit() {
        let heads = (0..<8).map { variant($0).head }
        #expect(VariantRule.displaced(by: variant(8).head, in: heads, limit: 8) == [0])
        #expect(VariantRule.displaced(by: variant(3).head, in: heads, limit: 8) == [3])
        #expect(VariantRule.displaced(by: variant(9).head, in: Array(heads.prefix(7)), limit: 8).isEmpty)
        #expect(VariantRule.displaced(by: variant(8).head, in: heads, limit: 1) == Array(0..<8))
        #expect(VariantRule.displaced(by: variant(8).head, in: heads, limit: 6) == [0, 2, 5])
        #expect(VariantRule.displaced(by: variant(8).head, in: [], limit: -1).isEmpty)
    }

    @Test("A response without Vary replaces all variants, and any variant replaces it")
    func unselected() {
        let all = Scene.stored("").head
        let foreign = Scene.stored("", selections: [.init(name: "bar", value: "1")], partition: "other").head
        let heads = [variant(1).head, all, variant(2).head, foreign]
        #expect(VariantRule.displaced(by: all, in: heads, limit: 8) == [0, 1, 2, 3])
        #expect(VariantRule.displaced(by: variant(2).head, in: heads, limit: 8) == [1, 2, 3])
    }

    struct OrderRow: Sendable, CustomTestStringConvertible {
        let new: String
        let stored: String
        /// The times of the request and of the response.
        let newTimes: ClosedRange<Int64>
        let storedTimes: ClosedRange<Int64>
        let isOutdated: Bool
        var now: Int64 = 100
        var testDescription: String { "\(new) \(newTimes), stored \(stored) \(storedTimes), now \(now)" }
    }

    static let overlapping: [OrderRow] = [
        // The requests overlapped.
        OrderRow(new: "Date: {0}", stored: "Date: {5}", newTimes: 0...1, storedTimes: 2...3, isOutdated: true),
        OrderRow(new: "Date: {5}", stored: "Date: {0}", newTimes: 0...1, storedTimes: 2...3, isOutdated: false),
        OrderRow(new: "Date: {0}", stored: "Date: {5}", newTimes: 2...3, storedTimes: 0...4, isOutdated: true),
        OrderRow(new: "Date: {0}", stored: "Date: {0}", newTimes: 0...1, storedTimes: 2...3, isOutdated: true),
        OrderRow(new: "Date: {0}", stored: "Date: {0}", newTimes: 2...3, storedTimes: 0...4, isOutdated: false),
        OrderRow(new: "Date: {0}", stored: "Date: {0}", newTimes: 0...1, storedTimes: 0...3, isOutdated: true),
        OrderRow(new: "Date: {0}", stored: "Date: {0}", newTimes: 0...1, storedTimes: 0...1, isOutdated: false),
        OrderRow(new: "", stored: "", newTimes: 0...1, storedTimes: 2...3, isOutdated: true),
        // The stored response was received before the request was sent.
        OrderRow(new: "Date: {0}", stored: "Date: {5}", newTimes: 3...4, storedTimes: 1...2, isOutdated: false),
        // It was received in the future: the clock was set back.
        OrderRow(new: "", stored: "", newTimes: 0...1, storedTimes: 200...201, isOutdated: false),
    ]

    @Test(
        "Of two responses whose requests overlapped, the one with the later Date is more recent",
        arguments: overlapping)
    func order(_ row: OrderRow) {
        func head(
            _ text: String, _ times: ClosedRange<Int64>, _ selections: [StoredHead.Selection] = []
        ) -> StoredHead {
            let delay = times.upperBound - times.lowerBound
            return Scene.stored(text, came: times.upperBound, delay: delay, selections: selections).head
        }
        let new = head(row.new, row.newTimes)
        let now = Scene.at(row.now)
        #expect(VariantRule.isOutdated(new, by: [head(row.stored, row.storedTimes)], now: now) == row.isOutdated)
        // Only responses that the new one would replace count.
        let selections = ["1", "2"].map { [StoredHead.Selection(name: "foo", value: $0)] }
        let stored = selections.map { head(row.stored, row.storedTimes, $0) }
        #expect(VariantRule.isOutdated(new, by: stored, now: now) == row.isOutdated)
        let variant = head(row.new, row.newTimes, selections[0])
        #expect(VariantRule.isOutdated(variant, by: stored, now: now) == row.isOutdated)
        #expect(!VariantRule.isOutdated(variant, by: [stored[1]], now: now))
        #expect(!VariantRule.isOutdated(new, by: [], now: now))
    }

    private func variant(_ number: Int) -> StoredVariant {
        Scene.stored(
            "", came: Int64((number * 5) % 8), selections: [.init(name: "foo", value: "\(number)")])
    }
}
