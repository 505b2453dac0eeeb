import Martlet
import MartletTesting
import Testing

@Suite("Host secrets stay at their origin", .timeLimit(.minutes(20)))
struct HostSecretTests {
    private static let report: OriginHandler.Respond = { request in
        let names = ["Accept", "Authorization", "X-Api-Key", "Cookie", "Idempotency-Key", "X-Call"]
        return .text(names.map { request.headers[$0] ?? "-" }.joined(separator: "|"))
    }

    private func host(at origin: TestOrigin) throws -> HTTPHost {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        var options = RequestOptions()
        options.idempotencyKey = .value("idem")
        return try HTTPSession.own().host(
            origin.base, headers: [.accept: "a/b", .init(key): "secret", .cookie: "c=1"], options: options
        ).with { $0.credentials = .basic(user: "me", password: "pw") }
    }

    @Test("At its own origin all of a host's data is sent, by path and by whole URL")
    func atHome() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { origin in
            let api = try host(at: origin)
            for path in ["x", origin.url("/other")] {
                #expect(try await api.get(path).text == "a/b|Basic bWU6cHc=|secret|c=1|idem|-")
            }
        }
    }

    @Test("A whole URL of another origin receives only the call's own fields and standard fields")
    func elsewhere() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { home in
            try await TestOrigin.withOrigin(respond: HostSecretTests.report) { other in
                let api = try host(at: home)
                #expect(try await api.get(other.url("/x")).text == "a/b|-|-|-|-|-")
                let call = try #require(HTTPField.Name("X-Call"))
                #expect(
                    try await api.get(other.url("/x"), headers: [.init(call): "mine"]).text
                        == "a/b|-|-|-|-|mine")
                // The same name with another port is another origin.
                #expect(home.requests.isEmpty)
            }
        }
    }

    @Test("A redirect to another origin carries no host secrets unless the policy trusts the whole chain")
    func redirected() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { other in
            let place = other.url("/there")
            try await TestOrigin.withOrigin { _ in
                .redirect(to: place, status: 307)
            } run: { home in
                let api = try host(at: home)
                #expect(try await api.get("x").text == "a/b|-|-|-|idem|-")
                #expect(home.requests.last?.headers["X-Api-Key"] == "secret")
                let trusting = api.with {
                    var policy = RedirectPolicy.follow()
                    policy.sendsCredentialsCrossOrigin = true
                    $0.options.redirects = policy
                }
                #expect(try await trusting.get("x").text.contains("|secret|"))
            }
        }
    }

    @Test("User name and password in the base are credentials and are never printed")
    func userInfo() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { origin in
            let base = "http://me:pw@\(origin.address)/v2"
            let api = try HTTPSession.own().host(base)
            #expect(try await api.get("x").text == "*/*|Basic bWU6cHc=|-|-|-|-")
            var shown = "\(api) \(String(reflecting: api))"
            dump(api, to: &shown)
            #expect(!shown.contains("pw"))
            // Credentials in a whole URL belong to that URL.
            let plain = try HTTPSession.own().host(origin.base)
            #expect(
                try await plain.get("http://a:b@\(origin.address)/").text.contains("Basic YTpi"))
        }
    }

    @Test("The description of a host contains no fields and no credentials")
    func printing() async throws {
        let api = try HTTPSession.own().host("https://a.example", headers: [.authorization: "Bearer tok"])
        var shown = "\(api) \(String(reflecting: api))"
        dump(api, to: &shown)
        #expect(!shown.contains("tok"))
        #expect(shown.contains("https://a.example/"))
    }

    @Test("Options of a call override the credentials")
    func ownCredentials() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { origin in
            var options = RequestOptions()
            options.authentication = AuthenticationSettings(credentials: .bearer("t"))
            let api = try host(at: origin)
            #expect(try await api.get("x", options: options).text.contains("Bearer t"))
        }
    }

    @Test("The handler of a host is not asked for the credentials of another origin after a redirect")
    func handler() async throws {
        let challenge: OriginHandler.Respond = { request in
            request.headers["Authorization"] == nil
                ? OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=x"]) : .text("in")
        }
        try await TestOrigin.withOrigin(respond: challenge) { other in
            let place = other.url("/there")
            try await TestOrigin.withOrigin { request in
                request.path == "/go" ? .redirect(to: place) : try await challenge(request)
            } run: { home in
                let handled = AuthenticationSettings(handler: { _ in .basic(user: "me", password: "pw") })
                let api = try HTTPSession.own().host(home.base)
                let ofOptions = api.with { $0.options.authentication = handled }
                for api in [api.with { $0.authentication = handled }, ofOptions] {
                    #expect(try await api.get("x").text == "in")
                    #expect(try await api.get("go").statusCode == 401)
                }
                #expect(other.requests.allSatisfy { $0.headers["Authorization"] == nil })
            }
        }
    }
}
