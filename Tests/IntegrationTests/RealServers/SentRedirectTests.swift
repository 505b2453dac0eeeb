import Martlet
import MartletTesting
import Testing

@Suite("Redirects of Martlet and curl", .timeLimit(.minutes(20)))
struct SentRedirectTests {
    /// Redirects to `/next?a=b`, with the status from the path.
    private static let redirecting: SentComparison.StreamedResponse = { request, other in
        guard let status = Int(request.path.dropFirst().prefix(3)) else { return .text("here") }
        let place = request.path.hasSuffix("/other") ? other : "next?a=b"
        return OriginResponse(status, headers: ["Location": place])
    }

    @Test("GET and HEAD are the same", arguments: [301, 302, 303, 307, 308])
    func get(_ status: Int) async throws {
        try await SentComparison().expectSame(requests: 2, answer: Self.redirecting) {
            ["-L", $0.url("/\(status)")]
        } martlet: {
            try await HTTPSession.plain().get($0.url("/\(status)"))
        }
        try await SentComparison().expectSame(requests: 2, answer: Self.redirecting) {
            ["-L", "--head", $0.url("/\(status)")]
        } martlet: {
            try await HTTPSession.plain().head($0.url("/\(status)"))
        }
    }

    @Test("POST is the same, with the body kept or dropped", arguments: [301, 302, 303, 307, 308], [false, true])
    func post(_ status: Int, _ keepsMethod: Bool) async throws {
        let keeping = keepsMethod ? ["--post301", "--post302", "--post303"] : []
        try await SentComparison().expectSame(requests: 2, answer: Self.redirecting) {
            ["-L", "-d", "a=1&b=2"] + keeping + [$0.url("/\(status)")]
        } martlet: {
            let session = HTTPSession.plain {
                if keepsMethod { $0.redirects.methodPreservingStatuses = [301, 302, 303] }
            }
            return try await session.post(
                $0.url("/\(status)"),
                body: .form([QueryItem(name: "a", value: "1"), QueryItem(name: "b", value: "2")]))
        }
    }

    @Test("PUT is the same, and its file is sent again", arguments: [301, 302, 303, 307, 308])
    func put(_ status: Int) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = try directory.write("from a file", to: "file.txt")
        try await SentComparison().expectSame(requests: 2, answer: Self.redirecting) {
            ["-L", "-H", "Expect:", "-T", file, $0.url("/\(status)")]
        } martlet: {
            try await HTTPSession.plain().put(
                $0.url("/\(status)"), body: .file(FilePath(file), contentType: nil))
        }
    }

    @Test("Martlet drops a custom content type with the body")
    func contentType() async throws {
        try await SentComparison(allowed: [.contentTypeOfNothing]).expectSame(
            requests: 2, answer: Self.redirecting
        ) {
            ["-L", "-H", "Content-Type: text/csv", "-d", "a,b", $0.url("/302")]
        } martlet: {
            try await HTTPSession.plain().post($0.url("/302"), body: .text("a,b", contentType: "text/csv"))
        }
    }

    @Test("Custom fields and a range are sent after a redirect")
    func fields() async throws {
        try await SentComparison().expectSame(requests: 2, answer: Self.redirecting) {
            ["-L", "-r", "5-8", "-H", "X-Nest: high", "-H", "Accept: text/html", $0.url("/307")]
        } martlet: {
            let nest = try #require(HTTPField.Name("X-Nest"))
            return try await HTTPSession.plain().get(
                $0.url("/307"), headers: [.range: "bytes=5-8", .init(nest): "high", .accept: "text/html"])
        }
    }

    /// curl 7.88 drops the last segment and the query, RFC 3986 §5.2.2 keeps them.
    @Test("A Location with only a fragment leads Martlet to the same target")
    func fragment() async throws {
        try await TestOrigin.withOrigin { request in
            request.number == 1 ? OriginResponse(302, headers: ["Location": "#there"]) : .text(request.target)
        } run: { origin async throws in
            let answer = try await HTTPSession.plain().get(origin.url("/deep/er?q=1#here"))
            #expect(answer.text == "/deep/er?q=1")
            #expect(answer.url.description.hasSuffix("#there"))
        }
    }

    @Test("The target of a redirect is resolved in the same way")
    func targets() async throws {
        for location in [
            "/a/../b/./c", "?only=query", "../up", "//127.0.0.1:PORT/slashes", "a b",
            "caf\u{e9}?\u{e9}",
            "/%7Eme", "./c;d=1", "/a?b=/../c", "..", "/a//b", "g?y#s",
        ] {
            try await SentComparison(allowed: [.caseOfHexDigits]).expectSame(requests: 2) { request, _ in
                guard request.path == "/deep/er/302", request.query == "q=1" else { return .text("here") }
                let host = request.headers["Host"] ?? ""
                return OriginResponse(
                    302, headers: ["Location": location.replacing("127.0.0.1:PORT", with: host)])
            } curl: {
                ["-L", "--max-redirs", "1", $0.url("/deep/er/302?q=1")]
            } martlet: {
                let session = HTTPSession.plain { $0.redirects.limit = 1 }
                return try await session.get($0.url("/deep/er/302?q=1"))
            }
        }
    }

    @Test(
        "Credentials are sent to the same origin and not to another, unless it is trusted",
        arguments: [false, true])
    func credentials(_ trusts: Bool) async throws {
        for path in ["/302", "/302/other", "/307/other"] {
            let follow = trusts ? "--location-trusted" : "-L"
            try await SentComparison().expectSame(requests: 2, answer: Self.redirecting) {
                [follow, "-u", "me:hunter2", $0.url(path)]
            } martlet: {
                let session = HTTPSession.plain {
                    $0.redirects.sendsCredentialsCrossOrigin = trusts
                    $0.authentication.credentials = .basic(user: "me", password: "hunter2")
                }
                return try await session.get($0.url(path))
            }
            try await SentComparison().expectSame(requests: 2, answer: Self.redirecting) {
                [follow, "-H", "Authorization: Token x", "-H", "Cookie: a=1", $0.url(path)]
            } martlet: {
                let session = HTTPSession.plain { $0.redirects.sendsCredentialsCrossOrigin = trusts }
                return try await session.get(
                    $0.url(path), headers: [.authorization: "Token x", .cookie: "a=1"])
            }
        }
    }
}
