@testable import MartletCredentials
@testable import MartletURL
import Testing

@testable import MartletAuthentication
@testable import MartletCore
@testable import MartletHosts

/// Follows chains of redirects and checks that credentials are sent only to the origin that they were given for.
@Suite("Credentials stay at their origin")
struct CredentialSeparationTests {
    private let digest = #"Digest realm="r", nonce="n1", qop="auth""#
    private static let elsewhere = [
        "http://b/", "http://a:81/", "https://a/", "http://a./", "http://aa/", "http://sub.a/",
    ]

    @Test(
        "A call's credentials are not sent to another origin, nor after the chain returns",
        arguments: elsewhere)
    func callCredentials(_ other: String) async throws {
        for credentials in [
            Credentials.basic(user: "u", password: "p"), .bearer("t"), .any(user: "u", password: "p"),
        ] {
            var scene = AuthenticationScene(AuthenticationSettings(credentials: credentials))
            if try await scene.sent("http://a/") == nil {
                #expect(try await scene.isResent("http://a/", after: digest))
                #expect(try await scene.sent("http://a/") != nil)
                #expect(try await scene.sent("http://a/same/origin") != nil)
            }
            #expect(try await scene.sent(other) == nil)
            #expect(try await !scene.isResent(other, after: digest, "Basic realm=r", "Bearer"))
            #expect(try await scene.sent(other) == nil)
            #expect(try await scene.sent("http://a/") == nil)
            #expect(try await !scene.isResent("http://a/", after: digest, "Basic realm=r", "Bearer"))
        }
    }

    @Test("Tokens are not sent to another origin and not fetched for it", arguments: elsewhere)
    func tokens(_ other: String) async throws {
        let provider = CountingTokens()
        var scene = AuthenticationScene(AuthenticationSettings(tokens: SingleFlightTokens(provider)))
        #expect(try await scene.sent("http://a/") == "Bearer t0")
        #expect(try await scene.sent(other) == nil)
        #expect(try await !scene.isResent(other, after: "Bearer"))
        #expect(try await scene.sent("http://a/") == nil)
        #expect(provider.counts == [1, 0])
    }

    @Test("A call's credentials are not sent if its first request goes to another origin")
    func sentElsewhereAtFirst() async throws {
        let provider = CountingTokens()
        let first = try HTTPURL("http://a/").origin
        let basic = AuthenticationSettings(credentials: .basic(user: "u", password: "p"))
        for settings in [basic, AuthenticationSettings(tokens: SingleFlightTokens(provider))] {
            var scene = AuthenticationScene(settings, firstOrigin: first)
            #expect(try await scene.sent("http://b/") == nil)
            #expect(try await !scene.isResent("http://b/", after: digest, "Basic realm=r", "Bearer"))
        }
        #expect(provider.counts == [0, 0])
        var scene = AuthenticationScene(basic, firstOrigin: first)
        #expect(try await scene.sent("http://a/") == "Basic dTpw")
    }

    @Test("A nonce of one origin is not used for another origin")
    func noStateAcross() async throws {
        let credentials = Credentials.digest(user: "u", password: "p")
        let settings = AuthenticationSettings(credentialsByOrigin: [
            try HTTPURL("http://a").origin: credentials, try HTTPURL("http://b").origin: credentials,
        ])
        var scene = AuthenticationScene(settings)
        _ = try await scene.sent("http://a/")
        #expect(try await scene.isResent("http://a/", after: digest))
        #expect(try await scene.sent("http://a/") != nil)
        #expect(try await scene.sent("http://b/") == nil)
        #expect(try await scene.isResent("http://b/", after: #"Digest realm="r", nonce="b1", qop="auth""#))
        let sent = try #require(try await scene.sent("http://b/"))
        #expect(sent.contains(#"nonce="b1""#) && !sent.contains("n1"))
        #expect(try #require(try await scene.sent("http://a/")).contains(#"nonce="n1""#))
    }

    @Test("A challenge that is pending at one origin is dropped on a redirect to another")
    func pendingAnswer() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .any(user: "u", password: "p")))
        _ = try await scene.sent("http://a/")
        #expect(try await scene.isResent("http://a/", after: "Basic realm=r"))
        #expect(try await scene.sent("http://b/") == nil)
        #expect(try await scene.sent("http://a/") == nil)
    }

    @Test("A handler is called once per origin, and its credentials are sent to that origin only")
    func handler() async throws {
        let script = HandlerScript([.basic(user: "a", password: "a"), .basic(user: "b", password: "b")])
        var scene = AuthenticationScene(AuthenticationSettings(handler: script.handler))
        _ = try await scene.sent("http://a/")
        #expect(try await scene.isResent("http://a/", after: "Basic realm=r"))
        #expect(try await scene.sent("http://a/") == "Basic YTph")
        #expect(try await scene.sent("http://b/") == nil)
        #expect(try await scene.isResent("http://b/", after: "Basic realm=r"))
        #expect(try await scene.sent("http://b/") == "Basic Yjpi")
        #expect(try await scene.sent("http://a/") == "Basic YTph")
        #expect(script.asked.map(\.origin.host) == ["a", "b"])
    }

    @Test("A netrc file is consulted for each host, but not for plain HTTP after HTTPS")
    func netrc() async throws {
        let netrc = try NetrcFile("machine a login a password a\nmachine b login b password b")
        var scene = AuthenticationScene(AuthenticationSettings(netrc: netrc))
        #expect(try await scene.sent("https://a/") == "Basic YTph")
        #expect(try await scene.sent("https://b/") == "Basic Yjpi")
        #expect(try await scene.sent("https://c/") == nil)
        #expect(try await scene.sent("http://a/") == nil)
        #expect(try await scene.sent("http://b/") == nil)
        var plain = AuthenticationScene(AuthenticationSettings(netrc: netrc))
        #expect(try await plain.sent("http://a:8080/") == "Basic YTph")
    }

    @Test("Credentials come first, then tokens, then credentials by origin, then netrc")
    func precedence() async throws {
        let origin = try HTTPURL("http://a").origin
        var settings = AuthenticationSettings(
            credentials: .basic(user: "u", password: "p"), tokens: SingleFlightTokens(CountingTokens()),
            credentialsByOrigin: [origin: .bearer("own")],
            netrc: try NetrcFile("machine a login a password a"))
        var all = AuthenticationScene(settings)
        #expect(try await all.sent("http://a/") == "Basic dTpw")
        settings.credentials = nil
        var tokens = AuthenticationScene(settings)
        #expect(try await tokens.sent("http://a/") == "Bearer t0")
        settings.tokens = nil
        var own = AuthenticationScene(settings)
        #expect(try await own.sent("http://a/") == "Bearer own")
        settings.credentialsByOrigin = [:]
        var netrc = AuthenticationScene(settings)
        #expect(try await netrc.sent("http://a/") == "Basic YTph")
        settings.netrcScheme = .digest
        var digesting = AuthenticationScene(settings)
        #expect(try await digesting.sent("http://a/") == nil)
    }

    @Test(
        "A redirect that strips the caller's Authorization field does not enable other credentials"
    )
    func strippedField() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .basic(user: "u", password: "p")))
        #expect(try await scene.sent(AuthenticationScene.request("http://a/", hasOwnField: true)) == nil)
        #expect(try await scene.sent("http://b/") == nil)
        #expect(try await scene.sent("http://a/") == nil)
    }

    @Test("The nonces and keys of one user are not used for another user of the session")
    func users() async throws {
        let memory = AuthenticationCache()
        for user in ["u", "v"] {
            var scene = AuthenticationScene(
                AuthenticationSettings(credentials: .digest(user: user, password: "p")), memory: memory)
            #expect(try await scene.sent("http://a/") == nil)
            _ = try await scene.isResent("http://a/", after: digest)
            #expect(try #require(try await scene.sent("http://a/")).contains("username=\"\(user)\""))
        }
    }

    @Test("The number of remembered nonces is limited, and the least recently used is evicted first")
    func bounded() throws {
        var table = ProtectionSpaceTable()
        let known = try #require(DigestChallenge(challenge(digest)))
        func key(_ host: Int) throws -> AuthenticationKey {
            AuthenticationKey(
                party: .origin, origin: try HTTPURL("http://h\(host)").origin,
                credentials: .digest(user: "u", password: "p"))
        }
        for host in 0..<1000 {
            table.recordDigest(
                try key(host), DigestSession(challenge: known, clientNonce: [], key: []), extent: .whole)
            _ = table.answer(for: try key(0), path: "/")
        }
        #expect(table.count == ProtectionSpaceTable.keyLimit)
        #expect(table.answer(for: try key(0), path: "/") != nil)
        #expect(table.answer(for: try key(1), path: "/") == nil)
        for number in 0..<1000 {
            table.recordBasic(try key(0), extent: ProtectionSpace(around: "/\(number)/"))
        }
        #expect(table.answer(for: try key(0), path: "/\(1000 - ProtectionSpaceTable.spaceLimit)/") != nil)
        #expect(table.answer(for: try key(0), path: "/\(999 - ProtectionSpaceTable.spaceLimit)/") == nil)
    }
}
