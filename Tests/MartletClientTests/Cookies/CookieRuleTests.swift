import MartletURL
import MartletCaching
import MartletCookies
import MartletCore
import Testing

@Suite("Cookie paths, Secure and name prefixes")
struct CookieRuleTests {
    private func path(_ path: String, for target: String, from origin: String = "/") throws -> Bool {
        try CookieScene.sent(
            ["a=b; Path=\(path)"], from: "https://site.org\(origin)", to: "https://site.org\(target)") != nil
    }

    @Test("A cookie is sent for its path and the paths below it, but not for a mere string prefix")
    func pathMatch() throws {
        for target in ["/foo", "/foo/", "/foo/bar", "/foo//bar", "/foo?x=/bar"] {
            #expect(try path("/foo", for: target), "\(target)")
        }
        for target in ["/", "/foobar", "/fo", "/Foo", "/f%6fo", "/bar/foo"] {
            #expect(try !path("/foo", for: target), "\(target)")
        }
        #expect(try path("/foo/", for: "/foo/bar"))
        #expect(try !path("/foo/", for: "/foo"))
        #expect(try path("/", for: "/anything"))
        #expect(try !path("/foo?", for: "/foo?"))
        #expect(try !path("/foo#", for: "/foo"))
    }

    @Test(
        "The default path is that of the request up to its last slash, also for an invalid Path"
    )
    func defaultPath() throws {
        for field in ["a=b", "a=b; Path", "a=b; Path=", "a=b; Path=x/y", "a=b; Path=\"/\""] {
            for (origin, target, goes) in [
                ("/", "/any", true), ("/foo", "/any", true), ("/foo/", "/foo", true),
                ("/foo/bar", "/foo/x", true),
                ("/foo/bar", "/foobar", false), ("/foo/bar/", "/foo/x", false),
                ("/foo/bar?a/b", "/foo/bar/x", true),
            ] {
                let sent = try CookieScene.sent(
                    [field], from: "https://site.org\(origin)", to: "https://site.org\(target)")
                #expect((sent == "a=b") == goes, "\(field) \(origin) \(target)")
            }
        }
    }

    @Test("A Path that is not UTF-8 is rejected, and a non-ASCII one matches no request")
    func otherPaths() throws {
        var scene = CookieScene()
        let url = try HTTPURL("https://site.org/\u{E9}")
        let field = Array("a=b; Path=/".utf8) + [0xE9]
        let rejections = scene.store.receive([field], from: url, isSecure: true, now: scene.now)
        #expect(rejections.map(\.reason) == [.invalidPath])
        #expect(try scene.receive("a=b; Path=/\u{E9}", from: "https://site.org/") == [])
        #expect(try scene.header("https://site.org/\u{E9}") == nil)
        #expect(try scene.receive("a=b; Path=/%C3%A9", from: "https://site.org/") == [])
        #expect(try scene.header("https://site.org/\u{E9}") == "a=b")
    }

    @Test("A default path with a semicolon is stored and survives both file formats")
    func semicolonInAddress() throws {
        var scene = CookieScene()
        #expect(try scene.receive("a=b", from: "https://site.org/x;v=1/y") == [])
        #expect(try scene.header("https://site.org/x;v=1/z") == "a=b")
        let cookies = scene.store.allCookies(at: scene.now)
        #expect(cookies.map(\.path) == ["/x;v=1"])
        #expect(CookieFile.content(CookieFile.text(of: cookies)).cookies == cookies)
        #expect(
            NetscapeCookieFile.cookies(NetscapeCookieFile.text(of: cookies), now: scene.now).cookies
                == cookies)
    }

    @Test("A default path beyond 1,024 bytes rejects the cookie unless the cookie has a Path")
    func longAddress() throws {
        let path = "/" + String(repeating: "p", count: 1023)
        var scene = CookieScene()
        #expect(try scene.receive("a=b", from: "https://site.org\(path)/y") == [])
        #expect(try scene.receive("c=d", from: "https://site.org\(path)p/y") == [.invalidPath])
        #expect(try scene.receive("e=f; Path=/", from: "https://site.org\(path)p/y") == [])
        #expect(try scene.header("https://site.org\(path)/z") == "a=b; e=f")
    }

    @Test("A cookie can be set for any path of its host")
    func otherPath() throws {
        #expect(try path("/x/y", for: "/x/y/z", from: "/quite/elsewhere"))
    }

    @Test("Secure cookies are accepted and sent over HTTPS only, also for localhost")
    func secure() throws {
        for host in ["site.org", "localhost", "127.0.0.1"] {
            var scene = CookieScene()
            #expect(try scene.receive("a=b; Secure", from: "http://\(host)/") == [.insecureOrigin])
            #expect(try scene.receive("a=b; Secure", from: "https://\(host)/") == [])
            #expect(try scene.header("http://\(host)/") == nil)
            #expect(try scene.header("https://\(host)/") == "a=b")
        }
    }

    @Test("An HttpOnly cookie is sent, and its flag is stored")
    func httpOnly() throws {
        var scene = CookieScene()
        try scene.receive("a=b; HttpOnly")
        #expect(try scene.header() == "a=b")
        #expect(scene.store.allCookies(at: scene.now).map(\.isHTTPOnly) == [true])
    }

    @Test("SameSite is stored, and SameSite=None requires Secure")
    func sameSite() throws {
        var scene = CookieScene()
        #expect(try scene.receive("a=1; SameSite=None") == [.crossSiteWithoutSecure])
        try scene.receive(
            "a=1; SameSite=Strict", "b=2; SameSite=lax", "c=3; SameSite=NONE; Secure", "d=4; SameSite=?")
        #expect(
            scene.store.allCookies(at: scene.now).map(\.sameSite) == [.strict, .lax, .none, .unspecified])
        #expect(try scene.header() == "a=1; b=2; c=3; d=4")
    }

    @Test("The name prefix __Secure- requires Secure, without regard to case")
    func securePrefix() throws {
        for prefix in ["__Secure-", "__secure-", "__SECURE-"] {
            var scene = CookieScene()
            #expect(try scene.receive("\(prefix)a=b") == [.prefixNotHonored])
            #expect(
                try scene.receive("\(prefix)a=b; Secure", from: "http://www.site.org/") == [.insecureOrigin])
            #expect(try scene.receive("\(prefix)a=b; Secure; Domain=site.org") == [])
            #expect(try scene.receive("=\(prefix)a=b; Secure") == [.prefixNotHonored])
            #expect(try scene.receive("\(prefix)a; Secure") == [.prefixNotHonored])
        }
        #expect(try CookieScene.sent(["__Secur-a=b"]) == "__Secur-a=b")
    }

    @Test("The name prefix __Host- requires Secure, an explicit Path=/ and no Domain")
    func hostPrefix() throws {
        for prefix in ["__Host-", "__host-", "__HOST-"] {
            var scene = CookieScene()
            for attributes in [
                "", "; Secure", "; Path=/", "; Secure; Path", "; Secure; Path=", "; Secure; Path=/x",
                "; Secure; Path=/; Domain=site.org", "; Secure; Path=/; Domain=www.site.org",
            ] {
                #expect(
                    try scene.receive("\(prefix)a=b\(attributes)") == [.prefixNotHonored], "\(attributes)")
            }
            #expect(try scene.receive("=\(prefix)a=b; Secure; Path=/") == [.prefixNotHonored])
            #expect(try scene.receive("\(prefix)a=b; Secure; Path=/") == [])
            #expect(try scene.header() == "\(prefix)a=b")
        }
    }

    @Test("A response over HTTP cannot replace or shadow a secure cookie")
    func leaveSecureAlone() throws {
        var scene = CookieScene()
        try scene.receive("a=secret; Secure; Path=/login; Domain=site.org")
        let insecure = "http://www.site.org/login"
        #expect(try scene.receive("a=x; Path=/login", from: insecure) == [.shadowsSecureCookie])
        #expect(try scene.receive("a=x; Path=/login/en", from: insecure) == [.shadowsSecureCookie])
        #expect(
            try scene.receive("a=x; Path=/login; Domain=site.org", from: insecure) == [.shadowsSecureCookie])
        #expect(
            try scene.receive("a=; Path=/login; Max-Age=0; Domain=site.org", from: insecure) == [
                .shadowsSecureCookie
            ])
        #expect(try scene.receive("a=x; Path=/login", from: "http://site.org/") == [.shadowsSecureCookie])
        #expect(try scene.receive("a=x; Path=/", from: insecure) == [])
        #expect(try scene.receive("b=x; Path=/login", from: insecure) == [])
        #expect(try scene.receive("a=x; Path=/login", from: "http://other.org/") == [])
        #expect(try scene.header("https://www.site.org/login") == "a=secret; b=x; a=x")
    }

    @Test("A response over HTTPS can replace a secure cookie with an insecure one")
    func secureOriginMay() throws {
        #expect(try CookieScene.sent(["a=1; Secure", "a=2"], to: "http://www.site.org/") == "a=2")
    }

    @Test("An expired secure cookie can be replaced over HTTP")
    func expiredSecure() throws {
        var scene = CookieScene()
        try scene.receive("a=1; Secure; Max-Age=10")
        scene.wait(11)
        #expect(try scene.receive("a=2", from: "http://www.site.org/") == [])
        #expect(try scene.header() == "a=2")
    }
}
