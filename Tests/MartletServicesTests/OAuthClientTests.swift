import FoundationEssentials
import Martlet
import MartletTestSupport
import MartletTesting
import MartletTransport
import Synchronization
import Testing

@testable import MartletAuthentication

@Suite("A client of OAuth 2.0", .timeLimit(.minutes(20)))
struct OAuthClientTests {
    /// A clock that a test moves, and a list that it appends to.
    private final class Scene: Sendable {
        private let start = MonotonicTime.now()
        private let seconds = Mutex(0)
        private let list = Mutex<[String]>([])

        var now: MonotonicTime { start.advanced(by: .seconds(seconds.withLock { $0 })) }
        var notes: [String] { list.withLock { $0 } }

        func advance(_ count: Int) { seconds.withLock { $0 += count } }
        func note(_ text: String) { list.withLock { $0.append(text) } }
    }

    /// A request of the token endpoint: the fields of its form, its `Authorization` field, and its number from 1.
    private struct TokenRequest {
        var fields: [String: String]
        var authorization: String?
        var number: Int
    }

    /// Runs an origin with a token endpoint, and a resource that responds with a status to a token.
    private func withOrigin(
        token: @escaping @Sendable (TokenRequest) async throws -> OriginResponse,
        resource: @escaping @Sendable (String?) -> Int = { $0 == nil ? 401 : 200 },
        run: (TestOrigin) async throws -> Void
    ) async throws {
        let number = Mutex(0)
        try await TestOrigin.withOrigin { request in
            guard request.path == "/token" else {
                return .text(request.headers["Authorization"] ?? "", status: resource(request.headers["Authorization"]))
            }
            let form = FormEncoding.decoded(try await request.collectText())
            let fields = Dictionary(form.map { ($0.name, $0.value ?? "") }) { "\($0)|\($1)" }
            let own = number.withLock {
                $0 += 1; return $0
            }
            return try await token(
                TokenRequest(fields: fields, authorization: request.headers["Authorization"], number: own))
        } run: { origin async throws in
            try await run(origin)
        }
    }

    private func count(_ path: String, _ origin: TestOrigin) -> Int { origin.requests.count { $0.target == path } }

    /// A client whose clock a test moves.
    private func client(
        _ origin: TestOrigin, _ scene: Scene, grant: OAuthTokenSource.Grant = .clientCredentials,
        leeway: Duration = .seconds(30)
    ) throws -> OAuthClient {
        let endpoint = try OAuthTokenEndpoint(
            origin.url("/token").httpTarget, "app", "s3cret", nil, .basic, [], .seconds(300), .patient())
        return OAuthClient(OAuthTokenSource(endpoint, grant: grant, leeway: leeway) { scene.now })
    }

    private static func issued(_ token: String, _ rest: String = "") -> OriginResponse {
        .json(text: #"{"access_token":"\#(token)","token_type":"Bearer"\#(rest)}"#)
    }

    // MARK: Requests

    @Test(
        "Basic sends the form-encoded name and secret, and calls send the token; the session's own fields are not sent")
    func basic() async throws {
        let scene = Scene()
        try await withOrigin(token: { request in
            scene.note(request.authorization ?? "none")
            #expect(request.fields == ["grant_type": "client_credentials", "scope": "a b", "audience": "x&y"])
            return Self.issued("t\(request.number)")
        }) { origin async throws in
            let session = HTTPSession.patient {
                $0.headers[.authorization] = "Basic c2Vzc2lvbg=="
                $0.authentication.credentials = .basic(user: "session", password: "s")
            }
            let client = try OAuthClient(
                tokenURL: origin.url("/token"), clientID: "my app:1", clientSecret: "p@ß w%/", scope: "a b",
                parameters: [QueryItem(name: "audience", value: "x&y")], session: session)
            let api = try HTTPSession.patient().host(origin.base) { $0.authentication = client.authentication }
            #expect(try await api.get("a").text == "Bearer t1")
            #expect(try await api.get("a").text == "Bearer t1")
            let expected = Data("my+app%3A1:p%40%C3%9F+w%25%2F".utf8).base64EncodedString()
            #expect(scene.notes == ["Basic \(expected)"])
        }
    }

    @Test(
        "The secret may be a field of the form, and a client without a secret names itself", arguments: [true, false])
    func formFields(hasSecret: Bool) async throws {
        let scene = Scene()
        try await withOrigin(token: { request in
            scene.note(request.authorization ?? "none")
            scene.note([request.fields["client_id"], request.fields["client_secret"]].map { $0 ?? "-" }.joined())
            return Self.issued("t")
        }) { origin async throws in
            let session = HTTPSession.patient { $0.headers[.authorization] = "Basic c2Vzc2lvbg==" }
            let client = try OAuthClient(
                tokenURL: origin.url("/token"), clientID: "a&b", clientSecret: hasSecret ? "c=d" : nil,
                secretMethod: .post, session: session)
            #expect(try await client.tokens.token() == "t")
            #expect(scene.notes == ["none", hasSecret ? "a&bc=d" : "a&b-"])
        }
    }

    @Test(
        "A token endpoint must be https, or http on a loopback address",
        arguments: [
            ("https://e.org/token", true), ("http://127.0.0.1/t", true), ("http://127.9.9.9:80/t", true),
            ("http://[::1]:8080/t", true), ("http://localhost/t", true), ("http://e.org/token", false),
            ("http://127.0.0.1.e.org/t", false), ("http://localhost.e.org/t", false), ("http://10.0.0.1/t", false),
            ("https://user:secret@e.org/token", false), ("ftp://e.org/t", false), ("token", false),
        ])
    func endpoint(url: String, isAllowed: Bool) throws {
        do {
            let client = try OAuthClient(tokenURL: url, clientID: "app", clientSecret: "s3cret")
            #expect(isAllowed)
            #expect("\(client)".contains("app"))
        } catch {
            #expect(!isAllowed)
            #expect(error.code == .invalidURL)
            #expect(!error.description.contains("secret"))
        }
    }

    @Test("No description, dump or error has a secret")
    func secrets() async throws {
        try await withOrigin(token: { request in
            request.number == 1
                ? Self.issued("t0ken", #","refresh_token":"r3fresh2""#) : .json(text: "{}", status: 500)
        }) { origin async throws in
            let client = try OAuthClient(
                tokenURL: origin.url("/token"), clientID: "app", clientSecret: "s3cret", refreshToken: "r3fresh",
                session: .patient()
            ) { _ in }
            #expect(try await client.tokens.token() == "t0ken")
            let error = try #require(
                await #expect(throws: OAuthError.self) { try await client.tokens.refresh(after: "t0ken") })
            var text = "\(client) \(client.authentication) \(client.tokens) \(error) "
            for value in [client, client.authentication, client.tokens, error] as [Any] { dump(value, to: &text) }
            for secret in ["s3cret", "r3fresh", "t0ken"] { #expect(!text.contains(secret)) }
        }
    }

    // MARK: Sharing

    @Test("Concurrent calls share one token request, and cancelling the first does not end it")
    func sharing() async throws {
        let signals = OriginSignals()
        try await withOrigin(token: { request in
            signals.raise("asked")
            try await signals.wait(for: "go")
            return Self.issued("t\(request.number)")
        }) { origin async throws in
            let client = try client(origin, Scene())
            let api = try HTTPSession.patient().host(origin.base) { $0.authentication = client.authentication }
            let first = Task { try await api.get("a").text }
            try await signals.wait(for: "asked")
            let others = (0..<20).map { _ in Task { try await api.get("a").text } }
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
            signals.raise("go")
            for other in others { #expect(try await other.value == "Bearer t1") }
            #expect(count("/token", origin) == 1)
        }
    }

    @Test("A rejected token is replaced once, and the call is repeated once", arguments: [true, false])
    func rejected(isAcceptedLater: Bool) async throws {
        try await withOrigin(
            token: { Self.issued("t\($0.number)") },
            resource: { $0 == "Bearer t2" && isAcceptedLater ? 200 : 401 }
        ) { origin async throws in
            let client = try client(origin, Scene())
            let api = try HTTPSession.patient().host(origin.base) { $0.authentication = client.authentication }
            #expect(try await api.get("a").statusCode == (isAcceptedLater ? 200 : 401))
            #expect(count("/a", origin) == 2)
            #expect(count("/token", origin) == 2)
        }
    }

    @Test(
        "A token is replaced before it expires, by the leeway or half of its lifetime",
        arguments: [(100, 70), (3600, 3570), (40, 20), (1, 1)])
    func expiry(lifetime: Int, replacedAfter seconds: Int) async throws {
        let scene = Scene()
        try await withOrigin(token: { Self.issued("t\($0.number)", #","expires_in":\#(lifetime)"#) }) {
            origin async throws in
            let client = try client(origin, scene)
            #expect(try await client.tokens.token() == "t1")
            scene.advance(seconds - 1)
            #expect(try await client.tokens.token() == "t1")
            scene.advance(1)
            #expect(try await client.tokens.token() == "t2")
            #expect(count("/token", origin) == 2)
        }
    }

    // MARK: Refresh tokens

    @Test("A new refresh token is stored before its access token is used, and sent the next time")
    func rotation() async throws {
        let scene = Scene()
        try await withOrigin(token: { request in
            #expect(request.fields["grant_type"] == "refresh_token")
            scene.note("sent \(request.fields["refresh_token"] ?? "-")")
            // The third response has none: the second remains valid.
            return Self.issued(
                "t\(request.number)", request.number == 3 ? "" : #","refresh_token":"r\#(request.number)""#)
        }) { origin async throws in
            let client = try client(
                origin, scene,
                grant: .refreshToken("r0") { token in
                    await Task.yield()
                    scene.note("stored \(token)")
                })
            #expect(try await client.tokens.token() == "t1")
            scene.note("used t1")
            for number in 2...4 { #expect(try await client.tokens.refresh(after: "t\(number - 1)") == "t\(number)") }
            #expect(
                scene.notes == [
                    "sent r0", "stored r1", "used t1", "sent r1", "stored r2", "sent r2", "sent r2", "stored r4",
                ])
        }
    }

    private struct DiskFull: Error {}

    @Test("If a new refresh token cannot be stored, calls throw that error, and the next request sends the new one")
    func unstored() async throws {
        let scene = Scene()
        try await withOrigin(token: { request in
            scene.note(request.fields["refresh_token"] ?? "-")
            return Self.issued("t\(request.number)", #","refresh_token":"r\#(request.number)""#)
        }) { origin async throws in
            let client = try client(
                origin, scene, grant: .refreshToken("r0") { token in if token == "r1" { throw DiskFull() } })
            await #expect(throws: DiskFull.self) { try await client.tokens.token() }
            scene.advance(1)
            #expect(try await client.tokens.token() == "t2")
            #expect(scene.notes == ["r0", "r1"])
        }
    }

    @Test("A rejected refresh token is not sent again, and a new one ends the failure")
    func invalidGrant() async throws {
        let scene = Scene()
        try await withOrigin(token: { request in
            request.fields["refresh_token"] == "old"
                ? .json(text: #"{"error":"invalid_grant","error_description":"expired"}"#, status: 400)
                : Self.issued("t\(request.number)")
        }) { origin async throws in
            let client = try client(origin, scene, grant: .refreshToken("old") { _ in })
            let api = try HTTPSession.patient().host(origin.base) { $0.authentication = client.authentication }
            for _ in 0..<3 {
                let error = await #expect(throws: OAuthError.self) { try await api.get("a") }
                #expect(error?.code == .invalidGrant)
                scene.advance(100_000)
            }
            #expect(count("/token", origin) == 1)
            await client.setRefreshToken("new")
            #expect(try await api.get("a").text == "Bearer t2")
            await client.setRefreshToken(nil)
            let error = await #expect(throws: OAuthError.self) { try await api.get("a") }
            #expect(error?.code == .invalidGrant && error?.status == nil)
            #expect(count("/token", origin) == 2)
            #expect(count("/a", origin) == 1)
        }
    }

    @Test("A refresh token that is set during a request is not replaced by that request's new one")
    func replacedDuringRequest() async throws {
        let (scene, signals) = (Scene(), OriginSignals())
        try await withOrigin(token: { request in
            scene.note(request.fields["refresh_token"] ?? "-")
            if request.number == 1 {
                signals.raise("asked")
                try await signals.wait(for: "go")
            }
            return Self.issued("t\(request.number)", #","refresh_token":"r\#(request.number)""#)
        }) { origin async throws in
            let client = try client(origin, scene, grant: .refreshToken("r0") { scene.note("stored \($0)") })
            let first = Task { try await client.tokens.token() }
            try await signals.wait(for: "asked")
            await client.setRefreshToken("other")
            let second = Task { try await client.tokens.token() }
            signals.raise("go")
            #expect(try await first.value == "t1")
            #expect(try await second.value == "t2")
            #expect(scene.notes == ["r0", "other", "stored r2"])
        }
    }

    // MARK: Failures

    @Test("A failing token endpoint receives requests at growing intervals, and a success resets them")
    func backoff() async throws {
        let scene = Scene()
        try await withOrigin(token: { request in
            request.number == 9 ? Self.issued("t", #","expires_in":2"#) : .text("down", status: 502)
        }) { origin async throws in
            let client = try client(origin, scene)
            var sent = 0
            for delay in [1, 2, 4, 8, 16, 32, 60, 60] {
                for (index, step) in [0, delay - 1].enumerated() {
                    scene.advance(step)
                    let error = await #expect(throws: OAuthError.self) { try await client.tokens.token() }
                    #expect(error?.code == .invalidResponse && error?.status == 502)
                    if index == 0 { sent += 1 }
                    #expect(count("/token", origin) == sent)
                }
                scene.advance(1)
            }
            #expect(try await client.tokens.token() == "t")
            // A token that cannot be replaced early is used until it expires.
            scene.advance(1)
            #expect(try await client.tokens.token() == "t")
            scene.advance(1)
            await #expect(throws: OAuthError.self) { try await client.tokens.token() }
            #expect(count("/token", origin) == 11)
        }
    }

    @Test("Retry-After delays the next token request, up to one hour", arguments: [(120, 120), (999_999_999, 3600)])
    func retryAfter(seconds: Int, delay: Int) async throws {
        let scene = Scene()
        try await withOrigin(token: { request in
            request.number > 1 ? Self.issued("t") : .status(429, headers: ["Retry-After": "\(seconds)"])
        }) { origin async throws in
            let client = try client(origin, scene)
            for step in [0, delay - 1] {
                scene.advance(step)
                await #expect(throws: OAuthError.self) { try await client.tokens.token() }
                #expect(count("/token", origin) == 1)
            }
            scene.advance(1)
            #expect(try await client.tokens.token() == "t")
        }
    }

    @Test("A redirect is not followed, and a large or cut response fails the call with the request's error")
    func hostile() async throws {
        try await TestOrigin.withOrigin(handler: .counter()) { other async throws in
            let target = other.url("/token")
            try await withOrigin(token: { request in
                switch request.number {
                case 1: .redirect(to: target, status: 307)
                case 2: .json(text: String(repeating: " ", count: 300 << 10) + #"{"access_token":"a"}"#)
                default: throw OriginFault(.reset)
                }
            }) { origin async throws in
                let scene = Scene()
                let client = try client(origin, scene)
                let api = try HTTPSession.patient().host(origin.base) { $0.authentication = client.authentication }
                let redirect = await #expect(throws: OAuthError.self) { try await api.get("a") }
                #expect(redirect?.status == 307)
                scene.advance(100)
                let large = await #expect(throws: HTTPError.self) { try await api.get("a") }
                #expect(large?.code == .authenticationFailed)
                #expect((large?.underlying as? HTTPError)?.code == .bodyTooLarge)
                scene.advance(100)
                let cut = await #expect(throws: HTTPError.self) { try await api.get("a") }
                #expect(cut?.code == .authenticationFailed && cut?.underlying is HTTPError)
                #expect(count("/token", origin) == 3)
                #expect(count("/a", origin) == 0)
                #expect(other.requests.isEmpty)
            }
        }
    }
}
