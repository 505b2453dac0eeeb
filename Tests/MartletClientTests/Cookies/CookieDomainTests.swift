import MartletCaching
import MartletCookies
import MartletCore
import Testing

@Suite("Which hosts a cookie goes to")
struct CookieDomainTests {
    @Test("Without Domain a cookie goes to exactly the host that set it")
    func hostOnly() throws {
        for field in ["a=b", "a=b; Domain", "a=b; Domain=", "a=b; Domain=.", "a=b; Domain=site.org; Domain="] {
            #expect(try CookieScene.sent([field]) == "a=b", "\(field)")
            #expect(try CookieScene.sent([field], to: "https://x.www.site.org/") == nil, "\(field)")
            #expect(try CookieScene.sent([field], to: "https://site.org/") == nil, "\(field)")
        }
    }

    @Test("With Domain it goes to that name and all below it, in any case and with a leading dot")
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
        "A domain that is not the host's own is refused",
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

    @Test("A domain in other than ASCII is refused; its A-labels are taken")
    func international() throws {
        var scene = CookieScene()
        #expect(try scene.receive("a=b; Domain=bücher.org", from: "https://bücher.org/") == [.invalidDomain])
        #expect(try scene.receive("a=b; Domain=xn--BCHER-kva.org", from: "https://bücher.org/") == [])
        #expect(try scene.header("https://www.bücher.org/") == "a=b")
    }

    @Test("Of several domains the last counts")
    func lastDomain() throws {
        #expect(
            try CookieScene.sent(["a=b; Domain=other.org; Domain=site.org"], to: "https://site.org/") == "a=b"
        )
        #expect(try CookieScene.sent(["a=b; Domain=site.org; Domain=other.org"]) == nil)
    }

    @Test("No cookie is set for a public suffix, in whatever case it is written")
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

    @Test("Nor for what is above a public suffix")
    func aboveSuffix() throws {
        var scene = CookieScene()
        let refusals = try scene.receive("a=b; Domain=example.com", from: "https://me.pages.example.com/")
        #expect(refusals == [.publicSuffix])
    }

    @Test("A host that is a public suffix itself keeps its cookies to itself")
    func hostIsSuffix() throws {
        for host in ["pages.example.com", "co.uk", "localhost", "x.ck"] {
            var scene = CookieScene()
            #expect(try scene.receive("a=b; Domain=\(host)", from: "https://\(host)/") == [])
            #expect(try scene.header("https://\(host)/") == "a=b")
            #expect(try scene.header("https://me.\(host)/") == nil)
        }
    }

    @Test("A name that an exception of the list makes registrable can set for all of itself")
    func exception() throws {
        #expect(
            try CookieScene.sent(["a=b; Domain=www.ck"], from: "https://x.www.ck/", to: "https://www.ck/")
                == "a=b")
    }

    @Test("An IP address has no domain above it and nothing below it")
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

    @Test("The port does not matter; a trailing dot is another host")
    func portAndDot() throws {
        #expect(
            try CookieScene.sent(["a=b"], from: "https://site.org:8443/", to: "https://site.org/") == "a=b")
        #expect(try CookieScene.sent(["a=b"], from: "https://site.org/", to: "https://site.org./") == nil)
        #expect(try CookieScene.sent(["a=b"], from: "https://site.org./", to: "https://site.org./") == "a=b")
    }

    @Test("Without a list only the last label is a public suffix, which the list says of itself")
    func noList() throws {
        let none = PublicSuffixList.lastLabel
        #expect(!none.isComplete)
        #expect(CookieScene.suffixes.isComplete)
        var scene = CookieScene(suffixes: none)
        #expect(try scene.receive("a=b; Domain=uk", from: "https://shop.co.uk/") == [.publicSuffix])
        #expect(try scene.receive("a=b; Domain=co.uk", from: "https://shop.co.uk/") == [])
        #expect(try scene.header("https://other.co.uk/") == "a=b")
    }

    @Test("A cookie stored for a domain that the list now knows as a suffix is narrowed to that host")
    func narrowed() throws {
        var scene = CookieScene()
        let cookie = try Cookie(name: "a", value: "b", domain: "co.uk", isHostOnly: false)
        scene.store.insert(cookie, now: scene.now)
        #expect(try scene.header("https://shop.co.uk/") == nil)
        #expect(try scene.header("https://co.uk/") == "a=b")
    }
}
