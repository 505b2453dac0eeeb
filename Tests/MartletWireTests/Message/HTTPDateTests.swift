import MartletWire
import Testing

@Suite("HTTP dates")
struct HTTPDateTests {
    @Test(
        "All three formats denote the same instant",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        ])
    func forms(text: String) {
        #expect(HTTPDate(text)?.secondsSinceEpoch == 784_111_777)
    }

    @Test(
        "An instant is formatted as IMF-fixdate",
        arguments: [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_102_444_800, "Fri, 01 Jan 2100 00:00:00 GMT"),
            (2_147_483_648, "Tue, 19 Jan 2038 03:14:08 GMT"),
        ])
    func written(seconds: Int64, text: String) {
        #expect(HTTPDate(secondsSinceEpoch: seconds).text == text)
        #expect(HTTPDate(text)?.secondsSinceEpoch == seconds)
    }

    @Test("Every day of nine centuries is read back as it was written")
    func days() {
        for day in stride(from: Int64(-135_000), through: 200_000, by: 37) {
            let date = HTTPDate(secondsSinceEpoch: day * 86_400 + 43_210)
            #expect(HTTPDate(date.text) == date)
        }
    }

    @Test("Instants beyond four-digit years are clamped")
    func extremes() {
        #expect(HTTPDate(secondsSinceEpoch: .max).text == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(HTTPDate(secondsSinceEpoch: .min).text == "Sat, 01 Jan 0000 00:00:00 GMT")
    }

    @Test("A two-digit year is at most 50 years in the future")
    func shortYears() {
        let now = HTTPDate("Sat, 21 Nov 2026 00:00:00 GMT")
        #expect(HTTPDate("Sunday, 06-Nov-76 08:49:37 GMT", now: now)?.text.contains("2076") == true)
        #expect(HTTPDate("Sunday, 06-Nov-77 08:49:37 GMT", now: now)?.text.contains("1977") == true)
        #expect(HTTPDate("Sunday, 06-Nov-26 08:49:37 GMT", now: now)?.text.contains("2026") == true)
        let later = HTTPDate("Sat, 21 Nov 2090 00:00:00 GMT")
        #expect(HTTPDate("Sunday, 06-Nov-10 08:49:37 GMT", now: later)?.text.contains("2110") == true)
    }

    @Test("Without a current time, two-digit years from 70 on belong to the 20th century")
    func shortYearsWithoutNow() {
        #expect(HTTPDate("Sunday, 06-Nov-70 08:49:37 GMT")?.text.contains("1970") == true)
        #expect(HTTPDate("Sunday, 06-Nov-69 08:49:37 GMT")?.text.contains("2069") == true)
    }

    @Test("An extreme current time does not trap")
    func absurdNow() {
        for seconds in [Int64.min, .max, 0, -1] {
            let now = HTTPDate(secondsSinceEpoch: seconds)
            #expect(HTTPDate("Sunday, 06-Nov-94 08:49:37 GMT", now: now) != nil)
        }
    }

    @Test(
        "The letters of each format can be in any case",
        arguments: [
            "sun, 06 nov 1994 08:49:37 gmt", "SUN, 06 NOV 1994 08:49:37 GMT",
            "SunDAY, 06-nOV-94 08:49:37 Gmt", "sUN nOV  6 08:49:37 1994",
        ])
    func ignoredCase(text: String) {
        #expect(HTTPDate(text, ignoresCase: true)?.secondsSinceEpoch == 784_111_777)
        #expect(HTTPDate(text) == nil)
        #expect(HTTPDate("sunx, 06 nov 1994 08:49:37 gmt", ignoresCase: true) == nil)
    }

    @Test("A leap second is accepted")
    func leapSecond() {
        #expect(HTTPDate("Sat, 31 Dec 2016 23:59:60 GMT")?.text == "Sun, 01 Jan 2017 00:00:00 GMT")
    }

    @Test(
        "Text in none of the formats is not a date",
        arguments: [
            "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 2026 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Foo, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 19940 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:3",
        ])
    func malformed(text: String) {
        #expect(HTTPDate(text) == nil)
    }
}
