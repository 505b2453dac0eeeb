import MartletURL
import FoundationEssentials
import MartletCaching
import MartletCookies
import MartletCore
import Testing

@Suite("Cookie values")
struct CookieTests {
    private func error(_ make: () throws(CookieError) -> Cookie) -> CookieError? {
        do throws(CookieError) {
            _ = try make()
            return nil
        } catch {
            return error
        }
    }

    @Test("A cookie can be created with any spelling of its host")
    func spelling() throws {
        let cases = [
            ("Site.ORG", "site.org"), (".site.org", "site.org"), ("bücher.org", "xn--bcher-kva.org"),
            ("0x7f.1", "127.0.0.1"),
            ("[::1]", "::1"), ("0:0::1", "::1"), ("localhost", "localhost"), ("site.org.", "site.org."),
        ]
        for (spelling, domain) in cases {
            #expect(try Cookie(name: "a", value: "b", domain: spelling).domain == domain)
        }
        #expect(try Cookie(name: "a", value: "b", domain: "127.0.0.1", isHostOnly: false).isHostOnly)
    }

    @Test("Creating a cookie that could not be sent is an error")
    func rejected() {
        for name in ["a=b", "a;b", "a\r\nb", "a\u{0}", " a", "a "] {
            #expect(
                error { () throws(CookieError) in try Cookie(name: name, value: "", domain: "x.org") }
                    == .invalidName)
        }
        for value in ["a;b", "a\nb", "a\u{7F}", " a", "a\t"] {
            #expect(
                error { () throws(CookieError) in try Cookie(name: "n", value: value, domain: "x.org") }
                    == .invalidValue)
        }
        for domain in ["", ".", "..", "a b", "a/b", "a:80", "user@x.org", "[::1", "x\r\n.org", "1.2.3.4.5"] {
            #expect(
                error { () throws(CookieError) in try Cookie(name: "n", value: "v", domain: domain) }
                    == .invalidDomain)
        }
        for path in ["", "x", "/a ", "/a\nb", "/" + String(repeating: "p", count: 1024)] {
            let found = error { () throws(CookieError) in
                try Cookie(name: "n", value: "v", domain: "x.org", path: path)
            }
            #expect(found == .invalidPath, "\(path)")
        }
        let long = String(repeating: "v", count: 4096)
        #expect(
            error { () throws(CookieError) in try Cookie(name: "n", value: long, domain: "x.org") }
                == .tooLarge)
        #expect(
            error { () throws(CookieError) in try Cookie(name: "", value: "", domain: "x.org") }
                == .invalidName)
        let promise = error { () throws(CookieError) in
            try Cookie(name: "__Host-a", value: "v", domain: "x.org")
        }
        #expect(promise == .prefixNotHonored)
    }

    @Test("Descriptions, dumps and mirrors do not contain the value")
    func secrecy() throws {
        let cookie = try Cookie(
            name: "session", value: "hunter2", domain: "site.org", isHostOnly: false, path: "/x",
            expires: CookieScene.start, isSecure: true, isHTTPOnly: true, sameSite: .lax)
        var text = ""
        dump(cookie, to: &text)
        dump([Optional(cookie)], to: &text)
        text +=
            "\(cookie) \(String(reflecting: cookie)) \(Mirror(reflecting: cookie).children.map { "\($0.value)" })"
        #expect(!text.contains("hunter2"))
        #expect(
            cookie.description
                == "session=***; .site.org/x; until Fri, 15 Jan 2027 08:00:00 GMT; Secure; HttpOnly; SameSite=Lax"
        )
        #expect(cookie.value == "hunter2")
    }

    @Test("A cookie stays equal when encoded as JSON and decoded, also if it is not UTF-8")
    func codable() throws {
        let first = try Cookie(
            name: "ä", value: "\u{1F36A}", domain: "site.org", path: "/x", expires: CookieScene.start,
            isSecure: true,
            sameSite: .strict, created: CookieScene.start)
        var scene = CookieScene()
        let url = try HTTPURL("https://site.org/")
        _ = scene.store.receive([[0xFF, 0x3D, 0xC3]], from: url, isSecure: true, now: scene.now)
        let cookies = [first] + scene.store.allCookies(at: scene.now)
        try #require(cookies.count == 2)
        let read = try JSONDecoder().decode([Cookie].self, from: JSONEncoder().encode(cookies))
        #expect(read == cookies)
        #expect(read[1].valueBytes == [0xC3])
    }

    @Test("Decoding an invalid cookie is an error")
    func malformedJSON() throws {
        let cookie = try Cookie(name: "aname", value: "b", domain: "site.org")
        let text = String(decoding: try JSONEncoder().encode(cookie), as: UTF8.self)
        for (part, other) in [
            ("aname", "a;b"), ("site.org", "a b"), ("\"Default\"", "\"Foo\""), ("\"b\"", "\"b\\n\""),
        ] {
            let changed = text.replacing(part, with: other)
            #expect(changed != text)
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(Cookie.self, from: Data(changed.utf8))
            }
        }
    }
}
