import MartletWire
import Testing

@testable import MartletCLI

@Suite("Dates of -z")
struct DateTextTests {
    private let now = HTTPDate(secondsSinceEpoch: 1_600_000_000)

    private func seconds(_ text: String) -> Int64? { DateText.read(text, now: now)?.secondsSinceEpoch }

    @Test(
        "HTTP dates, ISO 8601 and the forms that curl reads give the same instant",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "1994-11-06T08:49:37Z", "1994-11-06T08:49:37.5Z", "1994-11-06 08:49:37",
            "1994-11-06T10:49:37+02:00", "1994-11-06 03:19:37 -0530", "1994-11-06T09:49:37+01",
            "06 Nov 1994 08:49:37", "Nov 6 08:49:37 1994", "06-Nov-94 08:49:37", "1994 Nov 6 08:49:37",
            "Sun 06 Nov 1994 08:49:37 UTC", "6 November 1994 09:49:37 CET", "Sunday 03:49:37 EST 6 Nov 94",
            "19941106 08:49:37", "Sun, 06 Nov 1994 09:49:37 +0100",
        ])
    func forms(_ text: String) {
        #expect(seconds(text) == 784_111_777)
    }

    @Test("A date without a time is midnight, and a time without seconds starts the minute")
    func parts() {
        for text in ["1994-11-06", "19941106", "06 Nov 1994", "Nov 6, 1994", "6-Nov-94"] {
            #expect(seconds(text) == 784_080_000, "\(text)")
        }
        #expect(seconds("1994-11-06 08:49") == 784_111_740)
        #expect(seconds("1 Jan 71") == 31_536_000)
        #expect(seconds("1 Jan 2070") == seconds("1 Jan 70"))
    }

    @Test(
        "A text that is not a date is rejected",
        arguments: [
            "", "yesterday", "1994", "11/06/1994", "1994-13-06", "1994-02-30", "30 Feb 1994",
            "6 Nov 1994 24:00:00", "6 Nov 1994 08:60", "6 Nov 1994 8:4", "6 Nov Dec 1994",
            "6 Nov 1994 08:49 XYZ", "6 Nov 1994 7 8", "123456789", "6 Nov 1200", "6 Növ 1994",
            "6 Nov 1994 08:49:37 +9900", "Sun Mon 6 Nov 1994", "1994-11-06T08:49:37+02:99",
        ])
    func senseless(_ text: String) {
        #expect(seconds(text) == nil)
    }

    @Test("A very long text is not a date")
    func endless() {
        #expect(seconds(String(repeating: " ", count: 1_000_000) + "1994-11-06") == nil)
    }
}
