import MartletURL
import Martlet
import Testing

@testable import MartletCLI

@Suite("Cookie files of -b FILE")
struct CookieFileTests {
    private func header(_ text: String, _ url: String, _ words: String...) async throws -> String? {
        let scene = try GetScene()
        try scene.write(text, to: "cookies")
        let group = try GetScene.groups(words + ["-b", scene.file("cookies")])[0]
        let jar = CookiePlan.makeJar()
        await CookiePlan.fill(jar, for: group)
        return await jar.header(for: try HTTPURL(url))
    }

    @Test(
        "Set-Cookie lines are read in any case, as if set by their domain for all paths")
    func setCookieLines() async throws {
        let text =
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Domain=h.test\r\nDate: x\r\n"
            + "set-cookie:c=d;secure; domain=.h.test ; HttpOnly\r\n\r\n"
            + "h.test\tFALSE\t/\tFALSE\t0\te\tf\n"
        #expect(try await header(text, "https://h.test/any/path") == "e=f; a=b; c=d")
        #expect(try await header(text, "https://www.h.test/") == "a=b; c=d")
        #expect(try await header(text, "http://h.test/") == "e=f; a=b")
        #expect(try await header(text, "https://other.test/") == nil)
    }

    @Test("Path and age are used, and an IP address is a valid domain")
    func attributes() async throws {
        let text =
            "Set-Cookie: a=b; Domain=127.0.0.1; Path=/p\nSet-Cookie: c=d; Domain=127.0.0.1; Max-Age=0\n"
        #expect(try await header(text, "http://127.0.0.1/p/q") == "a=b")
        #expect(try await header(text, "http://127.0.0.1/") == nil)
    }

    @Test("A line without a valid domain is never sent")
    func noDomain() async throws {
        for text in ["Set-Cookie: a=b\n", "Set-Cookie: a=b; Domain=\n", "Set-Cookie: a=b; Domain=a b\n"] {
            #expect(try await header(text, "http://127.0.0.1/") == nil)
        }
    }

    @Test("The bytes of a value are not changed, even if they are not UTF-8")
    func bytes() async throws {
        let scene = try GetScene()
        let (name, domain) = (Array("Set-Cookie: a=".utf8), Array("; Domain=h.test\n".utf8))
        try scene.write(name + [0xE9] + domain, to: "cookies")
        let group = try GetScene.groups(["-b", scene.file("cookies")])[0]
        let jar = CookiePlan.makeJar()
        await CookiePlan.fill(jar, for: group)
        let sent = await jar.headerBytes(for: try HTTPURL("http://h.test/"))
        #expect(sent == Array("a=".utf8) + [0xE9])
    }

    @Test("-j leaves out session cookies")
    func session() async throws {
        let text = "Set-Cookie: a=b; Domain=h.test\nSet-Cookie: c=d; Domain=h.test; Max-Age=9999\n"
        #expect(try await header(text, "http://h.test/", "-j") == "c=d")
    }
}
