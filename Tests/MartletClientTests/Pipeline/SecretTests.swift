import Martlet
import MartletTesting
import Testing

/// All bytes that a call sends to an origin without secrets of its own.
@Suite("Secrets stay at their origin")
struct SecretTests {
    private static let secrets = [
        "s3cret-token", "s3cret-password", "czNjcmV0", "s3cret-cookie", "s3cret-proxy", "s3cret-key",
        "s3cret-default",
        "s3cret-url",
    ]

    /// A redirect of the home origin to the foreign one.
    enum Away: CaseIterable, Sendable {
        case redirect302
        case redirect307
        case chainThatReturns
        case challengeThenRedirect
        case userInfoInLocation
        case retryThenRedirect
    }

    /// Returns every request line at an origin, with its fields.
    private static func bytes(at origin: TestOrigin) -> String {
        origin.requests.map { request in
            "\(request.method) \(request.target)\n"
                + request.headers.map { "\($0.name): \($0.value)\n" }.joined()
        }.joined()
    }

    private static func holds(_ text: String) -> [String] {
        secrets.filter { text.contains($0) }
    }

    private static func session() throws -> HTTPSession {
        let jar = CookieJar()
        return HTTPSession.own { configuration in
            configuration.cookies = jar
            configuration.redirects.secretFields = [HTTPField.Name("X-Api-Key") ?? .authorization]
            configuration.headers[.proxyAuthorization] = "Basic s3cret-proxy"
            configuration.retry = .transient(backoff: .constant(.zero))
        }
    }

    private static func respond(_ way: Away, _ request: OriginRequest, foreign: String) -> OriginResponse {
        let cookie: OriginFields = ["Set-Cookie": "session=s3cret-cookie; Path=/"]
        switch (way, request.path) {
        case (.redirect302, "/start"):
            return OriginResponse(302, headers: ["Location": foreign, "Set-Cookie": "session=s3cret-cookie"])
        case (.redirect307, "/start"):
            return OriginResponse(307, headers: ["Location": foreign, "Set-Cookie": "session=s3cret-cookie"])
        case (.userInfoInLocation, "/start"):
            let place = foreign.replacing("http://", with: "http://user:s3cret-url@")
            return OriginResponse(302, headers: ["Location": place])
        case (.chainThatReturns, "/start"):
            return OriginResponse(302, headers: ["Location": foreign + "?back"])
        case (.challengeThenRedirect, "/start"):
            guard request.headers["Authorization"]?.hasPrefix("Digest") == true else {
                return OriginResponse(
                    401, headers: ["WWW-Authenticate": "Digest realm=\"home\", nonce=\"n0nce\", qop=\"auth\""])
            }
            return OriginResponse(302, headers: ["Location": foreign])
        case (.retryThenRedirect, "/start"):
            return request.number % 2 == 1
                ? OriginResponse(503, headers: cookie) : OriginResponse(302, headers: ["Location": foreign])
        default:
            return .text(
                "home: \(request.headers["Authorization"] ?? "-") \(request.headers["X-Api-Key"] ?? "-")")
        }
    }

    @Test("No secret reaches a foreign origin", arguments: Away.allCases)
    func foreign(_ way: Away) async throws {
        try await TestOrigin.withOrigin { request in
            if request.query == "back" { return .redirect(to: request.headers["X-Home"] ?? "/nowhere") }
            // The foreign origin requests every kind of credentials.
            if request.headers["Authorization"] == nil, request.path == "/asks" {
                return OriginResponse(
                    401,
                    headers: [
                        "WWW-Authenticate": "Digest realm=\"home\", nonce=\"f0reign\", qop=\"auth\"",
                        "WWW-Authenticate": "Basic realm=\"home\"",
                    ])
            }
            return .text("foreign")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { request in
                // Cookies depend on the host and not on the port, so the foreign origin has another name.
                SecretTests.respond(
                    way, request, foreign: foreign.url("/asks").replacing("127.0.0.1", with: "localhost"))
            } run: { home async throws in
                let session = try SecretTests.session()
                var request = try HTTPRequest(method: .post, url: home.url("/start"))
                request.headerFields[HTTPField.Name("X-Api-Key") ?? .accept] = "s3cret-key"
                request.headerFields[HTTPField.Name("X-Home") ?? .accept] = home.url("/end")
                request.headerFields[.cookie] = "mine=s3cret-cookie"
                var options = RequestOptions()
                if way == .challengeThenRedirect {
                    options.authentication = AuthenticationSettings(
                        credentials: .digest(user: "user", password: "s3cret-password"))
                } else {
                    request.headerFields[.authorization] = "Bearer s3cret-token"
                }
                options.idempotencyKey = .random
                let exchange = try await session.send(request, body: .text("body"), options: options)
                #expect(foreign.connectionCount > 0)
                let seen = SecretTests.bytes(at: foreign)
                #expect(SecretTests.holds(seen) == [])
                #expect(!seen.lowercased().contains("authorization:"))
                #expect(!seen.lowercased().contains("\ncookie:"))
                // After a redirect chain returns, credentials are not added again.
                if way == .chainThatReturns { #expect(exchange.text == "home: - -") }
            }
        }
    }

    @Test("The session's default fields are sent only to the origin of the call")
    func defaults() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("foreign")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .redirect(to: foreign.url())
            } run: { home async throws in
                let session = HTTPSession.own { $0.headers[.authorization] = "Bearer s3cret-default" }
                #expect(try await session.get(home.url()).text == "foreign")
                #expect(SecretTests.holds(SecretTests.bytes(at: home)) == ["s3cret-default"])
                #expect(SecretTests.holds(SecretTests.bytes(at: foreign)) == [])
            }
        }
    }

    @Test("User name and password in a URL are sent only to its origin")
    func inURL() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("foreign")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { request in
                request.path == "/go"
                    ? .redirect(to: foreign.url()) : .text(request.headers["Authorization"] ?? "-")
            } run: { home async throws in
                let session = HTTPSession.own()
                let address = home.url("/stay").replacing("http://", with: "http://user:s3cret-url@")
                // Base64 of `user:s3cret-url`.
                #expect(try await session.get(address).text == "Basic dXNlcjpzM2NyZXQtdXJs")
                let away = home.url("/go").replacing("http://", with: "http://user:s3cret-url@")
                let exchange = try await session.get(away)
                #expect(exchange.text == "foreign")
                #expect(!SecretTests.bytes(at: foreign).contains("Authorization"))
                #expect(exchange.metrics.hops.allSatisfy { $0.url.user == nil })
            }
        }
    }

    @Test("Credentials by origin are sent to that origin only, also after a redirect")
    func byOrigin() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Authorization"] ?? "-")
        } run: { second async throws in
            try await TestOrigin.withOrigin { _ in
                .redirect(to: second.url())
            } run: { first async throws in
                let session = HTTPSession.own { configuration in
                    configuration.authentication.credentialsByOrigin = [
                        (try? HTTPURL(second.url()).origin) ?? (try! HTTPURL("http://x").origin): .bearer(
                            "for-second")
                    ]
                }
                #expect(try await session.get(first.url()).text == "Bearer for-second")
                #expect(!SecretTests.bytes(at: first).contains("for-second"))
            }
        }
    }
}
