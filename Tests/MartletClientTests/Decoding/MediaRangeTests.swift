import MartletContent
import MartletCore
import Testing

@Suite("Media ranges")
struct MediaRangeTests {
    @Test(
        "The most specific matching range with a nonzero weight decides whether a type is accepted",
        arguments: [
            ("text/*", "text/plain", true), ("text/*", "image/png", false), ("*/*", "image/png", true),
            ("*", "image/png", true), ("*;q=0.2, text/x;q=0", "text/x", false),
            ("text/html", "TEXT/HTML; charset=utf-8", true), ("Text/Html", "text/html", true),
            ("text/*, text/html;q=0", "text/html", false), ("text/*, text/html;q=0", "text/css", true),
            ("*/*;q=0, text/*", "text/css", true), ("*/*;q=0, text/*", "image/png", false),
            ("text/html;level=1", "text/html", false), ("text/html;level=1", "text/html; Level=1", true),
            ("text/html;level=1;q=0, text/html", "text/html;level=1", false),
            ("application/json;charset=utf-8", "application/json", true),
            ("application/json;charset=utf-8", "application/json;charset=UTF-8", true),
            ("application/json;charset=utf-8", "application/json;charset=latin1", false),
            ("application/*+json", "application/problem+json", true),
            ("application/*+json", "application/json", false),
            ("application/*+json", "text/x+json", false), ("text/x;a=\",\", b/c", "b/c", true),
            ("", "text/x", false), (",,;q=1,/", "text/x", false), ("*/json", "a/json", false),
            ("text/x;q=0.001", "text/x", true), ("text/x;q=0.000", "text/x", false),
            ("text/x;q=nonsense", "text/x", true), ("text/x;Q=0", "text/x", false),
        ])
    func acceptance(list: String, type: String, isTaken: Bool) throws {
        #expect(MediaRangeList([list]).accepts(try #require(MediaType(type))) == isTaken)
    }

    @Test("Weights have three decimals, and an invalid weight counts as 1")
    func weights() throws {
        let weights = [
            "0", "0.", "0.5", "0.05", "0.123", "1", "1.000", "1.5", "2", "0.1234", "-1", "", "0,5",
        ]
        #expect(
            weights.map { MediaRange("a/b;q=\($0)")?.weight } == [
                0, 0, 500, 50, 123, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000,
            ])
    }

    @Test(
        "A megabyte of any input is parsed in linear time", arguments: [",", "a/b,", ";", "\"", "a/b;q=0,", "*"])
    func hugeLists(unit: String) throws {
        let type = try #require(MediaType("x/y"))
        let (isAccepted, time) = ThreadTime.of {
            MediaRangeList([String(repeating: unit, count: (1 << 20) / unit.utf8.count)]).accepts(type)
        }
        #expect(!isAccepted)
        #expect(time < .seconds(40))
    }
}
