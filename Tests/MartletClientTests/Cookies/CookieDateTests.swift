import MartletCookies
import MartletCore
import MartletHosts
import Testing

@Suite("Cookie dates")
struct CookieDateTests {
    private func seconds(_ text: String) -> Int64? { CookieDate.secondsSinceEpoch(Array(text.utf8)[...]) }

    @Test(
        "A date is parsed in any order and with any separators",
        arguments: [
            "Fri, 15 Jan 2027 08:00:00 GMT", "Fri, 15-Jan-2027 08:00:00 GMT",
            "Friday, 15-Jan-27 08:00:00 GMT",
            "Fri Jan 15 08:00:00 2027", "Jan 15 2027 08:00:00", "2027 Jan 15 08:00:00",
            "08:00:00 15 Jan 2027",
            "15 Jan 8:0:0 2027", "15/jAnUaRy\\27\"08:00:00\"", "15  -  JAN , 2027;@08:00:00",
            "No, 15 Jan 27 08:00:00 PST",
            "15 27 Jan 08:00:00", "Fri, 15 Jan 2027 08:00:00 GMT+0200 (EET)",
            "Fri, 15th Jan 2027AD 08:00:00x",
            "15 Janitor 2027 08:00:00", "Fri, 15 Jan 2027 08:00:00 11:22:33", "::00 15 Jan 2027 08:00:00",
        ])
    func forms(_ text: String) {
        #expect(seconds(text) == 1_800_000_000)
    }

    @Test("A year of two digits is between 1970 and 2069")
    func shortYears() {
        #expect(seconds("1 Jan 70 00:00:00") == 0)
        #expect(seconds("1 Jan 99 00:00:00") == 915_148_800)
        #expect(seconds("1 Jan 00 00:00:00") == 946_684_800)
        #expect(seconds("1 Jan 69 00:00:00") == 3_124_224_000)
    }

    @Test("Dates from the year 1601 to 9999 are valid")
    func range() {
        #expect(seconds("1 Jan 1601 00:00:00") == -11_644_473_600)
        #expect(seconds("31 Dec 9999 23:59:59") == 253_402_300_799)
        #expect(seconds("31 Dec 1600 23:59:59") == nil)
    }

    @Test(
        "An invalid date is rejected",
        arguments: [
            "", " ", "soon", "0", "15 Jan 2027", "Jan 2027 08:00:00", "15 2027 08:00:00", "15 Jan 08:00:00",
            "015 Jan 2027 08:00:00", "15 Jan 12027 08:00:00", "0 Jan 2027 08:00:00", "32 Jan 2027 08:00:00",
            "31 Apr 2027 08:00:00", "29 Feb 2027 08:00:00", "30 Feb 2028 08:00:00", "15 Jan 2027 24:00:00",
            "15 Jan 2027 08:60:00", "15 Jan 2027 08:00:60", "15 Jan 2027 08:00", "15 Jan 2027 008:00:00",
            "15 Jan 2027 08:00:000", "15 Ja 2027 08:00:00", "15 Foo 2027 08:00:00",
            "15 Jan 2027 91:00:00 08:00:00",
            "99999999999999999999 Jan 2027 08:00:00", "15 Jan 2027 08:00: 00",
        ])
    func none(_ text: String) {
        #expect(seconds(text) == nil)
    }

    @Test("The 29th of February is valid in leap years only")
    func leapDays() {
        #expect(seconds("29 Feb 2028 00:00:00") == 1_835_395_200)
        #expect(seconds("29 Feb 2000 00:00:00") == 951_782_400)
        #expect(seconds("29 Feb 2100 00:00:00") == nil)
    }
}
