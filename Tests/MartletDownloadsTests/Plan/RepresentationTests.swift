import MartletContent
@testable import MartletDownloads
import MartletWire
import Testing

@Suite("Versions of a file and their validators")
struct RepresentationTests {
    private static let old = ("Last-Modified", "Tue, 15 Nov 1994 12:00:00 GMT")

    /// A version with a `Last-Modified` and the `Date` of its response.
    private func dated(_ date: String?) -> Representation {
        var fields = [RepresentationTests.old]
        if let date { fields.append(("Date", date)) }
        return Representation(FieldBlock(fields))
    }

    @Test("A strong entity tag is the condition, a weak one never is")
    func tags() {
        #expect(Representation.sample(("ETag", "\"a\"")).condition == "\"a\"")
        #expect(Representation.sample(("ETag", "W/\"a\"")).condition == nil)
        #expect(Representation.sample(("ETag", "W/\"a\""), RepresentationTests.old).condition == nil)
        #expect(Representation.sample(("ETag", "a")).condition == nil)
        #expect(Representation.sample(("ETag", "\"\u{E9}\"")).condition?.isEmpty == false)
    }

    @Test("Several different entity tags are ignored, repeated ones count as one")
    func severalTags() {
        #expect(Representation.sample(("ETag", "\"a\""), ("ETag", "\"b\"")).entityTag == nil)
        #expect(Representation.sample(("ETag", "\"a\""), ("ETag", "\"a\"")).condition == "\"a\"")
    }

    @Test(
        "A date is the condition if it is at least 60 s older than the response",
        arguments: [
            ("Tue, 15 Nov 1994 12:00:59 GMT", false), ("Tue, 15 Nov 1994 12:01:00 GMT", true),
            ("Tue, 15 Nov 1994 12:00:00 GMT", false), ("Tue, 15 Nov 1994 11:00:00 GMT", false),
            ("Wed, 16 Nov 1994 12:00:00 GMT", true), ("yesterday", false),
        ])
    func dates(_ date: String, _ isStrong: Bool) {
        let state = dated(date)
        #expect(state.isLastModifiedStrong == isStrong)
        #expect(state.condition == (isStrong ? RepresentationTests.old.1 : nil))
    }

    @Test("Without Date no date is a condition, and a strong tag has priority over a strong date")
    func missingDate() {
        #expect(dated(nil).condition == nil)
        let both = Representation.sample(
            ("ETag", "\"a\""), RepresentationTests.old, ("Date", "Wed, 16 Nov 1994 12:00:00 GMT"))
        #expect(both.condition == "\"a\"")
    }

    @Test("Dates that differ or cannot be read are ignored")
    func unusableDates() {
        let two = Representation.sample(
            RepresentationTests.old, ("Last-Modified", "Wed, 16 Nov 1994 12:00:00 GMT"))
        #expect(two.lastModified == nil)
        #expect(Representation.sample(("Last-Modified", "never")).lastModified == nil)
    }

    @Test(
        "Codings are those that change the bytes",
        arguments: [("gzip", true), ("identity", false), (" , identity ,", false), ("identity, BR", true)])
    func codings(_ value: String, _ isCoded: Bool) {
        #expect((Representation.sample(("Content-Encoding", value)).coding != nil) == isCoded)
    }

    /// Two versions, whether they certainly differ, and whether they are certainly the same.
    struct Pair: Sendable {
        let mine: [(String, String)]
        let its: [(String, String)]
        let differs: Bool
        let isProven: Bool
    }

    private static let strongDate = [old, ("Date", "Wed, 16 Nov 1994 12:00:00 GMT")]
    static let pairs: [Pair] = [
        Pair(mine: [("ETag", "\"a\"")], its: [("ETag", "\"a\"")], differs: false, isProven: true),
        Pair(mine: [("ETag", "\"a\"")], its: [("ETag", "\"b\"")], differs: true, isProven: false),
        Pair(mine: [("ETag", "W/\"a\"")], its: [("ETag", "W/\"a\"")], differs: false, isProven: false),
        Pair(mine: [("ETag", "W/\"a\"")], its: [("ETag", "W/\"b\"")], differs: true, isProven: false),
        Pair(mine: [("ETag", "\"a\"")], its: [("ETag", "W/\"a\"")], differs: true, isProven: false),
        Pair(mine: [("ETag", "\"a\"")], its: [], differs: false, isProven: false),
        Pair(mine: [], its: [("ETag", "\"a\"")], differs: false, isProven: false),
        Pair(mine: strongDate, its: [old], differs: false, isProven: true),
        Pair(mine: [old], its: [old], differs: false, isProven: false),
        Pair(
            mine: strongDate, its: [("Last-Modified", "Wed, 16 Nov 1994 11:00:00 GMT")], differs: true,
            isProven: false),
        Pair(mine: [], its: [], differs: false, isProven: false),
        Pair(
            mine: [("ETag", "\"a\"")], its: [("ETag", "\"a\""), ("Content-Encoding", "gzip")], differs: true,
            isProven: false),
        Pair(
            mine: [("ETag", "\"a\""), ("Content-Encoding", "gzip")],
            its: [("ETag", "\"a\""), ("Content-Encoding", "GZIP")], differs: false, isProven: true),
    ]

    @Test("Versions are distinguished by tags, dates and codings", arguments: pairs)
    func compared(_ pair: Pair) {
        let mine = Representation(FieldBlock(pair.mine))
        let its = Representation(FieldBlock(pair.its))
        #expect(mine.differs(from: its) == pair.differs)
        #expect(mine.isProven(by: its) == pair.isProven)
    }
}
