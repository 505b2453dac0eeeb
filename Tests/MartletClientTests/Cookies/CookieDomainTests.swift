import MartletCaching
import MartletCookies
import MartletCore
import Testing

@Suite("Cookie domains")
struct CookieDomainTests {
    @Test("A cookie without a Domain is sent only to the host that set it")
    func hostOnly() throws {
        for field in ["a=b", "a=b; Domain", "a=b; Domain=", "a=b; Domain=.", "a=b; Domain=site.org; Domain="] {
            #expect(try CookieScene.sent([field]) == "a=b", "\(field)")
            #expect(try CookieScene.sent([field], to: "https://x.www.site.org/") == nil, "\(field)")
            #expect(try CookieScene.sent([field], to: "https://site.org/") == nil, "\(field)")
        }
    }

    @Test("A cookie with a Domain is sent to that name and its subdomains")
    func domain() throws {
        for field in ["a=b; Domain=site.org", "a=b; Domain=.site.org", "a=b; domain= .SiTe.ORG "] {
            for host in ["site.org", "www.site.org", "x.y.site.org", "WWW.SITE.org"] {
                #expect(try CookieScene.sent([field], to: "https://\(host)/") == "a=b", "\(field) \(host)")
            }
            for host in ["notsite.org", "site.org.com", "other.org", "org", "www.site.org."] {
                #expect(try CookieScene.sent([field], to: "https://\(host)/") == nil, "\(field) \(host)")
            }
        }
    }

    @Test(
        "A Domain that does not include the host is rejected",
        arguments: [
            "other.org", "x.www.site.org", "ite.org", "w.site.org", "..site.org", "site.org.", "site.org..",
            "site..org",
            "\"site.org\"", "site.org:443", "site.org/", "*.site.org", ". site.org", "www.site.org .",
            "127.0.0.1",
        ])
    func foreign(_ domain: String) throws {
        var scene = CookieScene()
        #expect(try scene.receive("a=b; Domain=\(domain)") == [.foreignDomain])
        #expect(scene.store.count == 0)
    }

    @Test("A non-ASCII Domain is rejected, and its A-labels are accepted")
    func international() throws {
        var scene = CookieScene()
        #expect(try scene.receive("a=b; Domain=bücher.org", from: "https://bücher.org/") == [.invalidDomain])
        #expect(try scene.receive("a=b; Domain=xn--BCHER-kva.org", from: "https://bücher.org/") == [])
        #expect(try scene.header("https://www.bücher.org/") == "a=b")
    }

    @Test("The last of several Domain attributes is used")
    func lastDomain() throws {
        #expect(
            try CookieScene.sent(["a=b; Domain=other.org; Domain=site.org"], to: "https://site.org/") == "a=b"
        )
        #expect(try CookieScene.sent(["a=b; Domain=site.org; Domain=other.org"]) == nil)
    }

    @Test("A Domain that is a public suffix is rejected, without regard to case")
    func publicSuffix() throws {
        var scene = CookieScene()
        for domain in ["org", "ORG", ".org", "Org"] {
            #expect(try scene.receive("a=b; Domain=\(domain)") == [.publicSuffix])
        }
        #expect(try scene.receive("a=b; Domain=Co.Uk", from: "https://shop.co.uk/") == [.publicSuffix])
        #expect(try scene.receive("a=b; Domain=uk", from: "https://shop.co.uk/") == [.publicSuffix])
        #expect(
            try scene.receive("a=b; Domain=pages.example.com", from: "https://me.pages.example.com/") == [
                .publicSuffix
            ])
        #expect(try scene.receive("a=b; Domain=x.ck", from: "https://shop.x.ck/") == [.publicSuffix])
        #expect(try scene.receive("a=b; Domain=co.uk.", from: "https://shop.co.uk./") == [.publicSuffix])
        #expect(scene.store.count == 0)
    }

    @Test("A Domain above a public suffix is rejected")
    func aboveSuffix() throws {
        var scene = CookieScene()
        let rejections = try scene.receive("a=b; Domain=example.com", from: "https://me.pages.example.com/")
        #expect(rejections == [.publicSuffix])
    }

    @Test("A host that is a public suffix can set cookies for itself only")
    func hostIsSuffix() throws {
        for host in ["pages.example.com", "co.uk", "localhost", "x.ck"] {
            var scene = CookieScene()
            #expect(try scene.receive("a=b; Domain=\(host)", from: "https://\(host)/") == [])
            #expect(try scene.header("https://\(host)/") == "a=b")
            #expect(try scene.header("https://me.\(host)/") == nil)
        }
    }

    @Test("A host below an exception of the list can set a cookie for the exception's name")
    func exception() throws {
        #expect(
            try CookieScene.sent(["a=b; Domain=www.ck"], from: "https://x.www.ck/", to: "https://www.ck/")
                == "a=b")
    }

    @Test("An IP address matches only itself")
    func addresses() throws {
        var scene = CookieScene()
        for domain in ["0.0.1", ".0.0.1", "1", "127.0.0.2", "7.0.0.1"] {
            #expect(
                try scene.receive("a=b; Domain=\(domain)", from: "https://127.0.0.1/") == [.foreignDomain])
        }
        #expect(try scene.receive("a=b; Domain=127.0.0.1", from: "https://127.0.0.1/") == [])
        #expect(try scene.receive("c=d", from: "https://[::1]:8443/") == [])
        #expect(try scene.header("https://127.0.0.1/") == "a=b")
        #expect(try scene.header("https://0x7f.1:8080/") == "a=b")
        #expect(try scene.header("https://x.127.0.0.1.org/") == nil)
        #expect(try scene.header("https://[0::1]/") == "c=d")
        #expect(scene.store.allCookies(at: scene.now).allSatisfy { $0.isHostOnly })
    }

    @Test("A cookie ignores the port, and a host name with a trailing dot is a different host")
    func portAndDot() throws {
        #expect(
            try CookieScene.sent(["a=b"], from: "https://site.org:8443/", to: "https://site.org/") == "a=b")
        #expect(try CookieScene.sent(["a=b"], from: "https://site.org/", to: "https://site.org./") == nil)
        #expect(try CookieScene.sent(["a=b"], from: "https://site.org./", to: "https://site.org./") == "a=b")
    }

    @Test("Without a list, only the last label is a public suffix, and the list is incomplete")
    func noList() throws {
        let none = PublicSuffixList.lastLabel
        #expect(!none.isComplete)
        #expect(CookieScene.suffixes.isComplete)
        var scene = CookieScene(suffixes: none)
        #expect(try scene.receive("a=b; Domain=uk", from: "https://shop.co.uk/") == [.publicSuffix])
        #expect(try scene.receive("a=b; Domain=co.uk", from: "https://shop.co.uk/") == [])
        #expect(try scene.header("https://other.co.uk/") == "a=b")
    }

    @Test("A stored cookie whose domain has become a public suffix is sent to that host only")
    func narrowed() throws {
        var scene = CookieScene()
        let cookie = try Cookie(name: "a", value: "b", domain: "co.uk", isHostOnly: false)
        scene.store.insert(cookie, now: scene.now)
        #expect(try scene.header("https://shop.co.uk/") == nil)
        #expect(try scene.header("https://co.uk/") == "a=b")
    }
}
