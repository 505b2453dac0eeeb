import MartletContent
import MartletCookies
import MartletCore
import MartletHosts
import Testing

@Suite("Set-Cookie parsing")
struct SetCookieParserTests {
    private func parse(_ text: String) throws -> SetCookie {
        try SetCookieParser.parse(Array(text.utf8)[...])
    }

    @Test("The first equals sign separates name and value, and both are trimmed")
    func pair() throws {
        let cases = [
            ("a=b", "a", "b"), ("  a\t =  b c \t", "a", "b c"), ("a=b=c", "a", "b=c"), ("a===b", "a", "==b"),
            ("a=", "a", ""), ("a", "", "a"), ("=a", "", "a"), ("==a", "", "=a"), (" = a", "", "a"),
            ("\"a=b\"=c", "\"a", "b\"=c"), ("a b=c", "a b", "c"), ("a=\" b \"", "a", "\" b \""),
            ("a=b, c=d", "a", "b, c=d"), ("a=b;c=d", "a", "b"), ("a;b=c", "", "a"),
            ("$Version=1; a=b", "$Version", "1"),
            ("a=\u{1F36A}", "a", "\u{1F36A}"), ("a=b\tc", "a", "b\tc"),
        ]
        for (text, name, value) in cases {
            let cookie = try parse(text)
            #expect(cookie.name == Array(name.utf8), "\(text)")
            #expect(cookie.value == Array(value.utf8), "\(text)")
        }
    }

    @Test(
        "A field with neither a name nor a value is rejected",
        arguments: ["", " ", "=", " = ", ";", "; a=b", "=;Secure"])
    func empty(_ text: String) {
        #expect(throws: CookieRejection.Reason.empty) { try parse(text) }
    }

    @Test("A control character is rejected with its offset")
    func controlCharacters() throws {
        for byte in Array(UInt8(0)...0x1F) + [0x7F] where byte != 0x09 {
            for place in [0, 1, 2, 3, 5, 12] {
                var text = Array("ab=cd; Path=/".utf8)
                text.insert(byte, at: place)
                #expect(throws: CookieRejection.Reason.controlCharacter(offset: place)) {
                    try SetCookieParser.parse(text[...])
                }
            }
        }
    }

    @Test("Bytes that are not UTF-8 are kept unchanged")
    func otherBytes() throws {
        let cookie = try SetCookieParser.parse([0xE9, 0x3D, 0xFF, 0x80][...])
        #expect(cookie.name == [0xE9])
        #expect(cookie.value == [0xFF, 0x80])
    }

    @Test("Name and value have at most 4,096 bytes together")
    func size() throws {
        let value = String(repeating: "v", count: 4093)
        #expect(try parse("abc=\(value)").value.count == 4093)
        #expect(try parse("  abc=\(value)  ;Path=/").value.count == 4093)
        #expect(throws: CookieRejection.Reason.tooLarge) { try parse("abcd=\(value)") }
        #expect(throws: CookieRejection.Reason.tooLarge) { try parse(String(repeating: "v", count: 4097)) }
    }

    @Test("Attributes match without regard to case and whitespace, and unknown ones are ignored")
    func attributes() throws {
        let cookie = try parse(
            "a=b;;  ; foo ; =; =x;sEcUrE=no ; HTTPonly;  samesite = LAX ;PATH = /x ;domain=.Site.ORG ")
        #expect(cookie.isSecure && cookie.isHTTPOnly)
        #expect(cookie.sameSite == .lax)
        #expect(cookie.path == Array("/x".utf8))
        #expect(cookie.domain == Array("site.org".utf8))
        let plain = try parse("a=b; \"Secure\"; Secure x; HttpOnly2; xPath=/x")
        #expect(!plain.isSecure && !plain.isHTTPOnly && plain.path == nil)
    }

    @Test("The last of several attributes with the same name is used")
    func lastWins() throws {
        #expect(try parse("a=b; Path=/x; Path=/y").path == Array("/y".utf8))
        #expect(try parse("a=b; Path=/x; Path=").path == nil)
        #expect(try parse("a=b; Path=/x; Path=y").path == nil)
        #expect(try parse("a=b; Domain=x.org; Domain=y.org").domain == Array("y.org".utf8))
        #expect(try parse("a=b; Domain=x.org; Domain=").domain == nil)
        #expect(try parse("a=b; SameSite=Strict; SameSite=None").sameSite == .none)
        #expect(try parse("a=b; SameSite=Strict; SameSite=what").sameSite == .unspecified)
        #expect(try parse("a=b; Max-Age=1; Max-Age=2").maximumAge == 2)
    }

    @Test("An invalid Max-Age or Expires is ignored")
    func invalidEnds() throws {
        for value in ["", "-", "+5", "1.5", "5s", "\"5\"", "0x5", "5 5", "--5", "5-"] {
            #expect(try parse("a=b; Max-Age=7; Max-Age=\(value)").maximumAge == 7, "\(value)")
        }
        #expect(try parse("a=b; Max-Age").maximumAge == nil)
        let expires = try parse("a=b; Expires=Fri, 15 Jan 2027 08:00:00 GMT; Expires=soon").expires
        #expect(expires == 1_800_000_000)
    }

    @Test("Max-Age can be negative and is clamped on overflow")
    func numbers() throws {
        #expect(try parse("a=b; Max-Age=-5").maximumAge == -5)
        #expect(try parse("a=b; Max-Age=007").maximumAge == 7)
        #expect(try parse("a=b; Max-Age=99999999999999999999999").maximumAge == .max)
        #expect(try parse("a=b; Max-Age=-99999999999999999999999").maximumAge == .min)
        #expect(try parse("a=b; Max-Age=9223372036854775808").maximumAge == .max)
    }

    @Test("An attribute value longer than 1,024 bytes is ignored")
    func longAttributes() throws {
        let long = "/" + String(repeating: "p", count: 1023)
        #expect(try parse("a=b; Path=/x; Path=\(long)").path?.count == 1024)
        #expect(try parse("a=b; Path=/x; Path=\(long)p").path == Array("/x".utf8))
        #expect(try parse("a=b; Domain=x.org; Domain=\(long)p").domain == Array("x.org".utf8))
        #expect(try parse("a=b; Secure=\(long)p").isSecure == false)
    }

    @Test(
        "A megabyte of separators is parsed in linear time", arguments: [",", ";", "=", " ", "a=;", "; Expires="])
    func linearTime(_ piece: String) throws {
        let text = "a=b;" + String(repeating: piece, count: 1_000_000 / piece.utf8.count)
        let bytes = Array(text.utf8)
        let (name, time) = try ThreadTime.of { try SetCookieParser.parse(bytes[...]).name }
        #expect(name == [0x61])
        // An optimized build takes less than 50 ms. Quadratic time would take minutes.
        #expect(time < .seconds(20))
    }

    @Test("Descriptions and dumps do not contain the value")
    func secrecy() throws {
        let cookie = try parse("session=hunter2")
        var text = ""
        dump(cookie, to: &text)
        text += "\(cookie) \(String(reflecting: cookie))"
        #expect(text.contains("session"))
        #expect(!text.contains("hunter2"))
    }
}
