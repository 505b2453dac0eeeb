import Martlet
import MartletTesting
import Testing

@Suite("Proxy requests and forms of Martlet and curl", .timeLimit(.minutes(20)))
struct SentThroughProxyTests {
    private func curl(_ place: SentComparison.Place, _ options: String...) -> [String] {
        ["--noproxy", "", "-x", "http://\(place.first)"] + options
    }

    @Test("Plain requests to a proxy are the same")
    func plain() async throws {
        let comparison = SentComparison(allowed: [.proxyConnection])
        try await comparison.expectSame(requests: 1) { _, _ in
            .text("proxied")
        } curl: {
            curl($0, "http://nest.example/a/../b?c=d#e")
        } martlet: { place in
            let proxy = try ProxySettings.http(place.first)
            let session = HTTPSession.plain { $0.proxy = proxy }
            return try await session.get("http://nest.example/a/../b?c=d#e")
        }
        try await comparison.expectSame(requests: 1) { _, _ in
            .text("proxied")
        } curl: {
            curl($0, "-U", "me:hunter2", "-u", "you:swordfish", "-d", "a=1", "http://nest.example:8080/")
        } martlet: { place in
            let user = ProxyCredentials(user: "me", password: "hunter2")
            let proxy = try ProxySettings.http(place.first, credentials: user)
            let session = HTTPSession.plain {
                $0.proxy = proxy
                $0.authentication.credentials = .basic(user: "you", password: "swordfish")
            }
            return try await session.post(
                "http://nest.example:8080/", body: .form([QueryItem(name: "a", value: "1")]))
        }
    }

    @Test("Redirects through a proxy are the same, including the proxy's password")
    func redirect() async throws {
        try await SentComparison(allowed: [.proxyConnection]).expectSame(requests: 2) { request, _ in
            request.path == "/first"
                ? OriginResponse(302, headers: ["Location": "http://other.example/second"]) : .text("proxied")
        } curl: {
            curl($0, "-L", "-U", "me:hunter2", "-u", "you:swordfish", "http://nest.example/first")
        } martlet: { place in
            let user = ProxyCredentials(user: "me", password: "hunter2")
            let proxy = try ProxySettings.http(place.first, credentials: user)
            let session = HTTPSession.plain {
                $0.proxy = proxy
                $0.authentication.credentials = .basic(user: "you", password: "swordfish")
            }
            return try await session.get("http://nest.example/first")
        }
    }

    @Test(
        "CONNECT is the same, and has no secrets of the origin",
        arguments: ["nest.example", "nest.example:8443", "[::1]"])
    func connect(_ host: String) async throws {
        let comparison = SentComparison(allowed: [.proxyConnection])
        for hasUser in [false, true] {
            try await comparison.expectSame(requests: 1) { _, _ in
                OriginResponse(502)
            } curl: {
                curl($0, "-u", "you:swordfish", "-H", "Cookie: a=1") + (hasUser ? ["-U", "me:hunter2"] : [])
                    + ["https://\(host)/a?b"]
            } martlet: { place in
                let user = hasUser ? ProxyCredentials(user: "me", password: "hunter2") : nil
                let proxy = try ProxySettings.http(place.first, credentials: user)
                let session = HTTPSession.plain {
                    $0.proxy = proxy
                }
                return try await session.get("https://\(host)/a?b", headers: [.cookie: "a=1"])
            }
        }
    }

    @Test("A multipart form is the same except for its boundary")
    func multipart() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let text = try directory.write("from a file\r\n", to: "a.txt")
        let page = try directory.write("<p>", to: "b.html")
        let blob = try directory.write("blob", to: "c.unknown")
        try await SentComparison(mask: { $0.maskBoundary() }).expectSame(requests: 1) { _, _ in
            .text("thanks")
        } curl: {
            [
                "-F", "title=Sea & sand", "-F", "odd\"name\u{e9}=\u{e4}", "-F", "empty=", "-F",
                "text=@\(text)", "-F",
                "page=@\(page);filename=x \"y\".html", "-F", "blob=@\(blob)", "-F",
                "typed={};type=application/json",
                $0.url("/form"),
            ]
        } martlet: {
            let body = HTTPBody.multipart { form in
                form.field("title", "Sea & sand")
                form.field("odd\"name\u{e9}", "\u{e4}")
                form.field("empty", "")
                form.file("text", at: FilePath(text))
                form.file("page", at: FilePath(page), filename: "x \"y\".html")
                form.file("blob", at: FilePath(blob))
                form.part("typed", .text("{}", contentType: "application/json"))
            }
            return try await HTTPSession.plain().post($0.url("/form"), body: body)
        }
    }

    @Test("A range is the same", arguments: ["0-0", "5-8", "-1", "9-", "0-1,4-5"])
    func range(_ range: String) async throws {
        try await SentComparison().expectSame(requests: 1) { _, _ in
            .text("part")
        } curl: {
            ["-r", range, $0.url("/")]
        } martlet: {
            try await HTTPSession.plain().get($0.url("/"), headers: [.range: "bytes=\(range)"])
        }
    }
}
