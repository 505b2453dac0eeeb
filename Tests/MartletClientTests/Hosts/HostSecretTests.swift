import Martlet
import MartletTesting
import Testing

@Suite("What is meant for a host stays with it", .timeLimit(.minutes(20)))
struct HostSecretTests {
    private static let report: OriginHandler.Respond = { request in
        let names = ["Accept", "Authorization", "X-Api-Key", "Cookie", "Idempotency-Key", "X-Call"]
        return .text(names.map { request.fields[$0] ?? "-" }.joined(separator: "|"))
    }

    private func host(at origin: TestOrigin) throws -> HTTPHost {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        var options = RequestOptions()
        options.idempotencyKey = .value("idem")
        return try HTTPSession.own().host(
            origin.base, headers: [.accept: "a/b", .init(key): "secret", .cookie: "c=1"], options: options
        ).with { $0.credentials = .basic(user: "me", password: "pw") }
    }

    @Test("At home all of it is sent, by path and by a whole URL of the same origin")
    func atHome() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { origin in
            let api = try host(at: origin)
            for path in ["x", origin.url("/other")] {
                #expect(try await api.get(path).text == "a/b|Basic bWU6cHc=|secret|c=1|idem|-")
            }
        }
    }

    @Test("A whole URL of another origin gets what any client would send, and what the call sets itself")
    func elsewhere() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { home in
            try await TestOrigin.withOrigin(respond: HostSecretTests.report) { other in
                let api = try host(at: home)
                #expect(try await api.get(other.url("/x")).text == "a/b|-|-|-|-|-")
                let call = try #require(HTTPField.Name("X-Call"))
                #expect(
                    try await api.get(other.url("/x"), headers: [.init(call): "mine"]).text
                        == "a/b|-|-|-|-|mine")
                // The same name at another port is another origin.
                #expect(home.requests.isEmpty)
            }
        }
    }

    @Test("A redirect to another origin takes none of it along, unless the policy trusts all of the chain")
    func redirected() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { other in
            let place = other.url("/there")
            try await TestOrigin.withOrigin { _ in
                .redirect(to: place, status: 307)
            } run: { home in
                let api = try host(at: home)
                #expect(try await api.get("x").text == "a/b|-|-|-|idem|-")
                #expect(home.requests.last?.fields["X-Api-Key"] == "secret")
                let trusting = api.with {
                    var policy = RedirectPolicy.follow()
                    policy.sendsCredentialsCrossOrigin = true
                    $0.options.redirects = policy
                }
                #expect(try await trusting.get("x").text.contains("|secret|"))
            }
        }
    }

    @Test("A user name and a password in the base are its credentials, and show nowhere")
    func userInfo() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { origin in
            let base = "http://me:pw@\(origin.address)/v2"
            let api = try HTTPSession.own().host(base)
            #expect(try await api.get("x").text == "*/*|Basic bWU6cHc=|-|-|-|-")
            var shown = "\(api) \(String(reflecting: api))"
            dump(api, to: &shown)
            #expect(!shown.contains("pw"))
            // Those of a whole URL are for that URL.
            let plain = try HTTPSession.own().host(origin.base)
            #expect(
                try await plain.get("http://a:b@\(origin.address)/").text.contains("Basic YTpi"))
        }
    }

    @Test("Neither fields nor credentials show where a host is printed")
    func printing() async throws {
        let api = try HTTPSession.own().host("https://a.example", headers: [.authorization: "Bearer tok"])
        var shown = "\(api) \(String(reflecting: api))"
        dump(api, to: &shown)
        #expect(!shown.contains("tok"))
        #expect(shown.contains("https://a.example/"))
    }

    @Test("Options of a call have the last word on credentials")
    func ownCredentials() async throws {
        try await TestOrigin.withOrigin(respond: HostSecretTests.report) { origin in
            var options = RequestOptions()
            options.authentication = AuthenticationSettings(credentials: .bearer("t"))
            let api = try host(at: origin)
            #expect(try await api.get("x", options: options).text.contains("Bearer t"))
        }
    }
}
