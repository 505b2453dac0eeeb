import MartletURL
import FoundationEssentials
import MartletCaching
import MartletCookies
import MartletCore
import MartletHosts
import Testing

@Suite("Storing and sending cookies")
struct CookieStoreTests {
    @Test("A cookie that is set again is replaced and keeps its position")
    func replaces() throws {
        var scene = CookieScene()
        try scene.receive("a=1")
        scene.wait(1)
        try scene.receive("b=2")
        scene.wait(1)
        try scene.receive("a=3; Secure; HttpOnly")
        #expect(try scene.header() == "a=3; b=2")
        #expect(scene.store.count == 2)
    }

    @Test("Cookies differ by name, domain, host-only flag and path")
    func identity() throws {
        var scene = CookieScene()
        try scene.receive(
            "a=1", "A=2", "a=3; Path=/x", "a=4; Path=/x/", "a=5; Domain=site.org", "a=6; Domain=www.site.org",
            "=7")
        #expect(scene.store.count == 7)
        #expect(try scene.header("https://www.site.org/x/y") == "a=4; a=3; a=1; A=2; a=5; a=6; 7")
    }

    @Test("Two Unicode spellings of a letter are different names")
    func spelling() throws {
        var scene = CookieScene()
        try scene.receive("\u{E9}=1", "e\u{301}=2")
        #expect(scene.store.count == 2)
        #expect(try scene.header() == "\u{E9}=1; e\u{301}=2")
    }

    @Test("Cookies are sent by descending path length, then by creation time")
    func order() throws {
        var scene = CookieScene()
        try scene.receive("a=1; Path=/", "b=2; Path=/x/y", "c=3; Path=/x")
        scene.wait(1)
        try scene.receive("d=4; Path=/x/y", "e=5; Path=/")
        #expect(try scene.header("https://www.site.org/x/y/z") == "b=2; d=4; c=3; a=1; e=5")
    }

    @Test("A cookie without a name is sent as its value, and only one is stored")
    func nameless() throws {
        #expect(try CookieScene.sent(["a"]) == "a")
        #expect(try CookieScene.sent(["a", "=b", "c=d"]) == "b; c=d")
        #expect(try CookieScene.sent(["a="]) == "a=")
    }

    @Test("Max-Age has precedence over Expires, and a cookie expires at exactly that second")
    func ends() throws {
        var scene = CookieScene()
        try scene.receive(
            "a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "b=2; Expires=Fri, 15 Jan 2027 08:00:05 GMT", "c=3")
        #expect(try scene.header() == "a=1; b=2; c=3")
        scene.wait(4)
        #expect(try scene.header() == "a=1; b=2; c=3")
        scene.wait(1)
        #expect(try scene.header() == "a=1; c=3")
        scene.wait(5)
        #expect(try scene.header() == "c=3")
        scene.wait(1_000_000_000)
        #expect(try scene.header() == "c=3")
    }

    @Test(
        "An expiry in the past removes the cookie",
        arguments: [
            "Max-Age=0", "Max-Age=-1", "Max-Age=-99999999999999999999",
            "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "Expires=Fri, 15 Jan 2027 08:00:00 GMT", "Expires=1 Jan 1601 00:00:00",
        ])
    func removes(_ attribute: String) throws {
        var scene = CookieScene()
        try scene.receive("a=1; Path=/; Domain=site.org", "b=2")
        #expect(try scene.receive("a=; Path=/; Domain=site.org; \(attribute)") == [])
        #expect(try scene.header() == "b=2")
        #expect(scene.store.count == 1)
        #expect(try scene.receive("c=3; \(attribute)") == [])
        #expect(scene.store.count == 1)
    }

    @Test("A cookie that is removed and set again is sent last")
    func removedAndSet() throws {
        var scene = CookieScene()
        try scene.receive("a=1", "b=2", "a=; Max-Age=0", "a=3")
        #expect(try scene.header() == "b=2; a=3")
    }

    @Test("Cookies are stored for at most 400 days")
    func longest() throws {
        var scene = CookieScene()
        try scene.receive(
            "a=1; Max-Age=99999999999999999999", "b=2; Expires=Fri, 31 Dec 9999 23:59:59 GMT",
            "c=3; Max-Age=34560001")
        let latest = CookieScene.start.addingTimeInterval(400 * 86_400)
        #expect(scene.store.allCookies(at: scene.now).allSatisfy { $0.expires == latest })
        scene.wait(400 * 86_400 - 1)
        #expect(try scene.header() == "a=1; b=2; c=3")
        scene.wait(1)
        #expect(try scene.header() == nil)
    }

    @Test("Only the first 50 fields of a response are processed")
    func perResponse() throws {
        var scene = CookieScene()
        let fields = (0..<60).map { Array("n\($0)=v".utf8) }
        let url = try HTTPURL("https://site.org/")
        let rejections = scene.store.receive(fields, from: url, isSecure: true, now: scene.now)
        #expect(rejections.map(\.reason) == [.overLimit] && rejections[0].index == 50)
        #expect(scene.store.count == 50)
    }

    @Test("A registrable domain has at most 180 cookies, from all of its hosts")
    func perDomain() throws {
        var scene = CookieScene()
        for number in 0..<200 {
            try scene.receive("n\(number)=v", from: "https://h\(number % 7).site.org/")
            scene.wait(1)
        }
        try scene.receive("other=v", from: "https://other.org/")
        #expect(scene.store.count == 181)
        #expect(!scene.store.allCookies(at: scene.now).contains { $0.name == "n19" })
        #expect(scene.store.allCookies(at: scene.now).contains { $0.name == "n20" })
    }

    @Test("The least recently used cookie is evicted first")
    func leastRecentlyUsed() throws {
        var scene = CookieScene(limits: CookieLimits(perDomain: 2))
        try scene.receive("a=1; Path=/a")
        scene.wait(1)
        try scene.receive("b=2; Path=/b")
        scene.wait(1)
        #expect(try scene.header("https://www.site.org/a") == "a=1")
        scene.wait(1)
        try scene.receive("c=3; Path=/")
        #expect(scene.store.allCookies(at: scene.now).map(\.name) == ["a", "c"])
    }

    @Test("Insecure cookies are evicted before secure ones, so HTTP responses cannot evict secure cookies")
    func secureStay() throws {
        var scene = CookieScene(limits: CookieLimits(perDomain: 10))
        for number in 0..<10 { try scene.receive("s\(number)=v; Secure") }
        scene.wait(100)
        for number in 0..<40 { try scene.receive("i\(number)=v", from: "http://x\(number).site.org/") }
        #expect(scene.store.count == 10)
        #expect(scene.store.allCookies(at: scene.now).allSatisfy { $0.isSecure })
    }

    @Test("Expired cookies are evicted before all others")
    func expiredFirst() throws {
        var scene = CookieScene(limits: CookieLimits(perDomain: 3))
        try scene.receive("a=1", "b=2; Max-Age=5; Secure")
        scene.wait(10)
        try scene.receive("c=3", "d=4")
        #expect(try scene.header() == "a=1; c=3; d=4")
    }

    @Test("Above the total limit, by default 3,000, the domain with the most cookies loses some first")
    func total() throws {
        var scene = CookieScene(limits: CookieLimits(perDomain: 180, total: 200))
        for number in 0..<60 { try scene.receive("small\(number)=v", from: "https://small.org/") }
        for number in 0..<150 { try scene.receive("s\(number)=v", from: "https://s\(number).com/") }
        #expect(scene.store.count == 200)
        #expect(scene.store.allCookies(at: scene.now).count { $0.domain == "small.org" } == 50)
        try scene.receive("one=v", from: "https://one.com/")
        #expect(scene.store.count == 200)
        #expect(CookieLimits().total == 3000)
    }

    @Test("The Cookie field has at most 8,192 bytes, and cookies that do not fit are omitted")
    func headerLimit() throws {
        var scene = CookieScene()
        let long = String(repeating: "v", count: 4090)
        try scene.receive("a=\(long); Path=/x", "b=\(long); Path=/x", "c=\(long)", "d=4")
        let header = try #require(try scene.header("https://www.site.org/x"))
        #expect(header == "a=\(long); b=\(long); d=4")
        #expect(header.utf8.count == 8191)
        var other = CookieScene(limits: CookieLimits(headerBytes: 11))
        try other.receive("a=1", "b=22222", "c=3", "d=4")
        #expect(try other.header() == "a=1; c=3")
    }

    @Test("With limits of zero or below, no cookies are stored or sent")
    func nothing() throws {
        var none = CookieScene(limits: CookieLimits(total: 0))
        try none.receive("a=1")
        #expect(none.store.count == 0)
        var unsent = CookieScene(limits: CookieLimits(headerBytes: -5))
        try unsent.receive("a=1")
        #expect(try unsent.header() == nil)
        var short = CookieScene(limits: CookieLimits(days: 0))
        try short.receive("a=1; Max-Age=5", "b=2")
        #expect(try short.header() == "b=2")
    }

    @Test("Bytes that are not UTF-8 are sent unchanged")
    func otherBytes() throws {
        var scene = CookieScene()
        let url = try HTTPURL("https://site.org/")
        let field: [UInt8] = [0x61, 0x3D, 0xFF, 0xC3, 0x28]
        #expect(scene.store.receive([field], from: url, isSecure: true, now: scene.now) == [])
        #expect(scene.store.header(for: url, isSecure: true, now: scene.now) == field)
    }

    @Test("A rejected field does not affect the others, and the report names it")
    func oneBad() throws {
        var scene = CookieScene()
        let url = try HTTPURL("http://site.org/")
        let fields = ["a=1", "b=2; Secure", "c=\u{0}", "d=4"].map { Array($0.utf8) }
        let rejections = scene.store.receive(fields, from: url, isSecure: false, now: scene.now)
        #expect(rejections.map(\.index) == [1, 2])
        #expect(rejections.map(\.name) == ["b", ""])
        try #require(rejections.count == 2)
        #expect(rejections[0].description == "Set-Cookie 2 (b): Secure over an insecure connection")
        #expect(rejections[1].description == "Set-Cookie 3: a control character at byte 2")
        #expect(try scene.header("http://site.org/") == "a=1; d=4")
    }

    @Test("A lookup among 3,000 cookies of 3,000 sites does not scan all of them")
    func quick() throws {
        var scene = CookieScene()
        for number in 0..<3000 { try scene.receive("a=v", from: "https://s\(number).com/") }
        #expect(scene.store.count == 3000)
        let url = try HTTPURL("https://s1500.com/")
        let (_, time) = ThreadTime.of {
            for _ in 0..<20_000 { _ = scene.store.header(for: url, isSecure: true, now: scene.now) }
        }
        // The bound is for debug builds on slow machines. A scan of all cookies would take more than a minute.
        #expect(time < .seconds(20))
    }
}
