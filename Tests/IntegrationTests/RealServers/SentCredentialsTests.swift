import Martlet
import MartletTesting
import Testing

@Suite("Credentials and cookies of Martlet and curl", .timeLimit(.minutes(20)))
struct SentCredentialsTests {
    private static func challenging(_ challenge: String) -> SentComparison.StreamedResponse {
        { request, _ in
            request.headers["Authorization"] == nil
                ? OriginResponse(401, headers: ["WWW-Authenticate": challenge]) : .text("in")
        }
    }

    @Test(
        "Basic is the same, preemptively or after a challenge",
        arguments: ["me:hunter2", "m\u{e9}:p\u{e4}ss:w\u{f6}rd", "me:"])
    func basic(_ pair: String) async throws {
        let colon = try #require(pair.firstIndex(of: ":"))
        let (user, password) = (String(pair[..<colon]), String(pair[pair.index(after: colon)...]))
        try await SentComparison().expectSame(requests: 1, answer: Self.challenging("Basic realm=\"x\"")) {
            ["-u", pair, $0.url("/")]
        } martlet: {
            let session = HTTPSession.plain {
                $0.authentication.credentials = .basic(user: user, password: password)
            }
            return try await session.get($0.url("/"))
        }
        try await SentComparison().expectSame(requests: 2, answer: Self.challenging("Basic realm=\"x\"")) {
            ["--anyauth", "-u", pair, $0.url("/")]
        } martlet: {
            let session = HTTPSession.plain {
                $0.authentication.credentials = .any(user: user, password: password)
            }
            return try await session.get($0.url("/"))
        }
    }

    @Test("The user and password of a URL are the same, only at its origin")
    func userInfo() async throws {
        let redirect: SentComparison.StreamedResponse = { request, other in
            switch request.path {
            case "/same": OriginResponse(302, headers: ["Location": "/end"])
            case "/other": OriginResponse(302, headers: ["Location": other])
            default: .text("end")
            }
        }
        for (path, count) in [("/end", 1), ("/same", 2), ("/other", 2)] {
            for user in ["me:hunter2", "m%40e:hunt%3Aer", "me", "me:", ":hunter2"] {
                try await SentComparison().expectSame(requests: count, answer: redirect) {
                    ["-L", "http://\(user)@\($0.first)\(path)"]
                } martlet: {
                    try await HTTPSession.plain().get("http://\(user)@\($0.first)\(path)")
                }
            }
        }
    }

    @Test("Bearer is the same")
    func bearer() async throws {
        try await SentComparison().expectSame(requests: 1, answer: Self.challenging("Bearer")) {
            ["--oauth2-bearer", "abc.def", $0.url("/")]
        } martlet: {
            let session = HTTPSession.plain { $0.authentication.credentials = .bearer("abc.def") }
            return try await session.get($0.url("/"))
        }
    }

    /// Challenges that both clients support.
    static let challenges = [
        // Without a quality of protection the response value is the same to the last digit.
        #"Digest realm="nest", nonce="abc""#,
        #"Digest realm="nest", nonce="abc", algorithm=MD5, opaque="xyz""#,
        #"Digest realm="nest", nonce="abc", algorithm=SHA-256"#,
        #"Digest realm="nest", nonce="abc", qop="auth", opaque="xyz""#,
        #"Digest realm="nest", nonce="abc", qop="auth,auth-int", algorithm=MD5"#,
        #"Digest realm="nest", nonce="abc", qop="auth", algorithm=SHA-256, opaque="""#,
        #"Digest realm="nest", nonce="abc", qop="auth", algorithm=MD5-sess"#,
        #"Digest realm="a \"quoted\" nest", nonce="abc==", qop="auth""#,
    ]

    @Test("The parameters of Digest are the same", arguments: challenges)
    func digest(_ challenge: String) async throws {
        try await SentComparison(mask: { $0.maskDigest() }).expectSame(
            requests: 2, answer: Self.challenging(challenge)
        ) {
            ["--digest", "-u", "me:hunter2", $0.url("/a%20b?c=d&e")]
        } martlet: {
            let session = HTTPSession.plain {
                $0.authentication.credentials = .digest(user: "me", password: "hunter2")
            }
            return try await session.get($0.url("/a%20b?c=d&e"))
        }
    }

    @Test("A posted body with Digest is the same after the challenge")
    func digestPost() async throws {
        try await SentComparison(allowed: [.bodyBeforeChallenge], mask: { $0.maskDigest() }).expectSame(
            requests: 2, answer: Self.challenging(#"Digest realm="nest", nonce="abc", qop="auth""#)
        ) {
            ["--digest", "-u", "me:hunter2", "-d", "a=1", $0.url("/")]
        } martlet: {
            let session = HTTPSession.plain {
                $0.authentication.credentials = .digest(user: "me", password: "hunter2")
            }
            return try await session.post($0.url("/"), body: .form([QueryItem(name: "a", value: "1")]))
        }
    }

    @Test("Both clients send a wrong Digest password once")
    func wrongPassword() async throws {
        try await SentComparison(mask: { $0.maskDigest() }).expectSame(requests: 2) { _, _ in
            OriginResponse(
                401, headers: ["WWW-Authenticate": #"Digest realm="nest", nonce="abc", qop="auth""#])
        } curl: {
            ["--digest", "-u", "me:hunter2", $0.url("/")]
        } martlet: {
            let session = HTTPSession.plain {
                $0.authentication.credentials = .digest(user: "me", password: "hunter2")
            }
            return try await session.get($0.url("/"))
        }
    }

    @Test("Both clients choose Digest among several schemes")
    func strongest() async throws {
        let answer = Self.challenging(#"Basic realm="nest", Digest realm="nest", nonce="abc", qop="auth""#)
        try await SentComparison(mask: { $0.maskDigest() }).expectSame(requests: 2, answer: answer) {
            ["--anyauth", "-u", "me:hunter2", $0.url("/")]
        } martlet: {
            let session = HTTPSession.plain {
                $0.authentication.credentials = .any(user: "me", password: "hunter2")
            }
            return try await session.get($0.url("/"))
        }
    }

    /// A Netscape cookie file with a cookie for each rule.
    private static let cookieFile = """
        # Netscape HTTP Cookie File
        127.0.0.1\tFALSE\t/\tFALSE\t0\troot1\tone
        127.0.0.1\tFALSE\t/\tFALSE\t4102444800\troot2\t"quoted two"
        127.0.0.1\tFALSE\t/deep\tFALSE\t4102444800\tdeep\tthree
        127.0.0.1\tFALSE\t/deep/er\tFALSE\t4102444800\tdeeper\tfour
        127.0.0.1\tFALSE\t/dee\tFALSE\t4102444800\tdee\tno
        127.0.0.1\tFALSE\t/\tTRUE\t4102444800\tsafe1\tsecure
        127.0.0.1\tFALSE\t/\tFALSE\t1\tdead1\tno
        #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t4102444800\thttp1\tonly
        example.com\tFALSE\t/\tFALSE\t4102444800\tother\tno
        .example.com\tTRUE\t/\tFALSE\t4102444800\tmine1\tno
        127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tempty\t

        """

    @Test("Cookies of a Netscape file and of responses are the same")
    func cookies() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = try directory.write(Self.cookieFile, to: "cookies.txt")
        let answer: SentComparison.StreamedResponse = { request, other in
            switch request.path {
            case "/deep/er/set":
                OriginResponse(
                    302,
                    headers: [
                        "Location": "/deep/next", "Set-Cookie": "fresh=five; Path=/",
                        "Set-Cookie": "deep2=six",
                        "Set-Cookie": "root1=; Max-Age=0; Path=/",
                        "Set-Cookie": "away=no; Domain=example.com",
                    ])
            case "/deep/next": OriginResponse(302, headers: ["Location": other])
            default: .text("end")
            }
        }
        for (path, count) in [
            ("/", 1), ("/deep", 1), ("/deep/er/x?y", 1), ("/deeper", 1), ("/deep/er/set", 3),
        ] {
            // curl treats http on loopback as secure, Martlet on demand.
            try await SentComparison(allowed: [.cookieOrder]).expectSame(requests: count, answer: answer) {
                ["-L", "-b", file, $0.url(path)]
            } martlet: {
                let jar = CookieJar(trustsLoopback: true)
                let report = try await jar.importNetscape(contentsOf: FilePath(file))
                #expect(report.malformedLines.isEmpty)
                return try await HTTPSession.plain { $0.cookies = jar }.get($0.url(path))
            }
        }
    }
}
