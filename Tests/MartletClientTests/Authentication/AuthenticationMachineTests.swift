@testable import MartletCredentials
@testable import MartletURL
import MartletTransport
import MartletWire
import Testing

@testable import MartletAuthentication
@testable import MartletCore

@Suite("Authentication of one call")
struct AuthenticationMachineTests {
    private let basic = #"Basic realm="r""#
    private let digest = #"Digest realm="r", nonce="n1", qop="auth""#

    // MARK: No credentials

    @Test("Without credentials, a 401 is returned as a normal response")
    func noCredentials() async throws {
        var scene = AuthenticationScene(AuthenticationSettings())
        #expect(try await scene.sent("http://a/") == nil)
        #expect(try await !scene.isResent("http://a/", after: basic, digest))
    }

    @Test("An Authorization field of the caller is sent unchanged, and the 401 for it is returned")
    func ownField() async throws {
        let script = HandlerScript([.basic(user: "u", password: "p")])
        var scene = AuthenticationScene(
            AuthenticationSettings(
                credentials: .basic(user: "u", password: "p"), handler: script.handler))
        let request = try AuthenticationScene.request("http://a/", hasOwnField: true)
        #expect(try await scene.sent(request) == nil)
        #expect(try await !scene.isResent(request, after: 401, [("WWW-Authenticate", basic)]))
        #expect(script.asked.isEmpty)
    }

    @Test("Other statuses are not treated as challenges, whatever fields they have")
    func otherStatus() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .any(user: "u", password: "p")))
        for status in [200, 403, 407, 500] {
            let request = try AuthenticationScene.request("http://a/")
            #expect(try await scene.sent(request) == nil)
            #expect(try await !scene.isResent(request, after: status, [("WWW-Authenticate", digest)]))
        }
    }

    // MARK: Basic

    @Test("Basic credentials are sent preemptively and not retried when rejected")
    func basicUnasked() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .basic(user: "u", password: "p")))
        #expect(try await scene.sent("http://a/") == "Basic dTpw")
        #expect(try await !scene.isResent("http://a/", after: basic))
        #expect(scene.flow.machine.failureCount == 1)
    }

    @Test("Basic credentials are not used for a Digest challenge")
    func basicAlone() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .basic(user: "u", password: "p")))
        _ = try await scene.sent("http://a/")
        #expect(try await !scene.isResent("http://a/", after: digest))
    }

    @Test("Credentials that cannot be serialized are an error before anything is sent")
    func unwritable() async throws {
        var scene = AuthenticationScene(
            AuthenticationSettings(credentials: .basic(user: "a:b", password: "p")))
        await #expect(throws: CredentialsError.colonInUser) { try await scene.sent("http://a/") }
        var digesting = AuthenticationScene(
            AuthenticationSettings(credentials: .digest(user: "a\r\nX: y", password: "p")))
        _ = try await digesting.sent("http://a/")
        #expect(try await digesting.isResent("http://a/", after: digest))
        await #expect(throws: CredentialsError.controlCharacter) { try await digesting.sent("http://a/") }
    }

    @Test(
        "With any scheme allowed, Basic is sent after a challenge, and then preemptively below its path"
    )
    func basicWhenAsked() async throws {
        let settings = AuthenticationSettings(credentials: .any(user: "u", password: "p"))
        var scene = AuthenticationScene(settings)
        #expect(try await scene.sent("http://a/x/y?q=/") == nil)
        #expect(try await scene.isResent("http://a/x/y?q=/", after: "Negotiate", basic))
        #expect(try await scene.sent("http://a/x/y?q=/") == "Basic dTpw")
        try await scene.accept("http://a/x/y?q=/")
        var later = AuthenticationScene(settings, memory: scene.memory)
        #expect(try await later.sent("http://a/x/z/w") == "Basic dTpw")
        #expect(try await later.sent("http://a/x") == nil)
        var other = AuthenticationScene(
            AuthenticationSettings(credentials: .any(user: "v", password: "p")), memory: scene.memory)
        #expect(try await other.sent("http://a/x/z") == nil)
    }

    // MARK: Digest

    @Test("Digest waits for a challenge, and later calls reuse the nonce with a higher count")
    func digestCounts() async throws {
        let settings = AuthenticationSettings(credentials: .digest(user: "user", password: "pass"))
        var scene = AuthenticationScene(settings)
        #expect(try await scene.sent("http://a/a") == nil)
        #expect(scene.flow.machine.expectsChallenge(try AuthenticationScene.request("http://a/a")))
        #expect(
            try await scene.isResent("http://a/a", after: #"Digest realm="realm", nonce="n1", qop="auth""#))
        let first = try #require(try await scene.sent("http://a/a"))
        #expect(first.contains("nc=00000001,"))
        try await scene.accept("http://a/a")
        var later = AuthenticationScene(settings, memory: scene.memory)
        let second = try #require(try await later.sent("http://a/b"))
        #expect(second.contains("nc=00000002,"))
        #expect(second.contains(#"response="957c246b9061cbc6caaabb2639401591""#))
        #expect(second.contains(#"uri="/b""#))
    }

    @Test("A nonce that the server repeats keeps its count, after rejections and for other users too")
    func sameNonceAgain() async throws {
        let settings = AuthenticationSettings(
            credentials: .digest(user: "user", password: "pass"), attemptLimit: 9)
        let challenge = #"Digest realm="r", nonce="same", qop="auth", domain="/a""#
        var first = AuthenticationScene(settings)
        var counts: [Substring] = []
        func note(_ sent: String?) throws {
            counts.append(try #require(sent?.firstMatch(of: /nc=(\d+),/)).1)
        }
        _ = try await first.sent("http://a/a/1")
        #expect(try await first.isResent("http://a/a/1", after: challenge))
        try note(try await first.sent("http://a/a/1"))
        // The nonce is not valid outside of its domain, so a new challenge is needed.
        var second = AuthenticationScene(settings, memory: first.memory)
        #expect(try await second.sent("http://a/b") == nil)
        #expect(try await second.isResent("http://a/b", after: challenge))
        try note(try await second.sent("http://a/b"))
        // The nonce is rejected as if it were stale, and the server sends it again.
        var third = AuthenticationScene(settings, memory: first.memory)
        try note(try await third.sent("http://a/a/2"))
        #expect(try await third.isResent("http://a/a/2", after: challenge))
        try note(try await third.sent("http://a/a/2"))
        // Another user's requests count, too, because the nonce belongs to the server.
        let other = AuthenticationSettings(credentials: .digest(user: "other", password: "pass"))
        var fourth = AuthenticationScene(other, memory: first.memory)
        _ = try await fourth.sent("http://a/a/3")
        #expect(try await fourth.isResent("http://a/a/3", after: challenge))
        try note(try await fourth.sent("http://a/a/3"))
        #expect(counts == ["00000001", "00000002", "00000003", "00000004", "00000005"])
    }

    @Test("Digest is preferred over Basic, and a stronger hash over a weaker one")
    func preference() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .any(user: "u", password: "p")))
        _ = try await scene.sent("http://a/")
        #expect(
            try await scene.isResent(
                "http://a/", after: basic, #"\#(digest), algorithm=MD5, \#(digest), algorithm=SHA-256"#))
        #expect(try #require(try await scene.sent("http://a/")).hasSuffix("algorithm=SHA-256"))
    }

    @Test("Credentials that were rejected with Digest are not sent with Basic")
    func noDowngrade() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .any(user: "u", password: "p")))
        _ = try await scene.sent("http://a/")
        #expect(try await scene.isResent("http://a/", after: digest, basic))
        #expect(try #require(try await scene.sent("http://a/")).hasPrefix("Digest "))
        #expect(try await !scene.isResent("http://a/", after: digest, basic))
        #expect(scene.memory.withTable { $0.count } == 0)
    }

    @Test("A stale nonce is not a rejection: the new nonce is used with a count of one")
    func stale() async throws {
        var scene = AuthenticationScene(
            AuthenticationSettings(credentials: .digest(user: "u", password: "p")))
        _ = try await scene.sent("http://a/")
        #expect(try await scene.isResent("http://a/", after: digest))
        _ = try await scene.sent("http://a/")
        #expect(
            try await scene.isResent(
                "http://a/", after: #"Digest realm="r", nonce="n2", qop=auth, stale=true"#))
        let sent = try #require(try await scene.sent("http://a/"))
        #expect(sent.contains(#"nonce="n2""#) && sent.contains("nc=00000001,"))
        #expect(scene.flow.machine.failureCount == 0)
    }

    @Test("A server that marks every nonce as stale cannot make a call retry endlessly")
    func staleForever() async throws {
        for sameNonce in [false, true] {
            var scene = AuthenticationScene(
                AuthenticationSettings(credentials: .digest(user: "u", password: "p")))
            var rounds = 0
            _ = try await scene.sent("http://a/")
            while try await scene.isResent(
                "http://a/",
                after: "Digest realm=r, nonce=n\(sameNonce ? 0 : rounds), qop=auth, stale=true")
            {
                rounds += 1
                _ = try await scene.sent("http://a/")
                if rounds > 100 { break }
            }
            #expect(rounds == (sameNonce ? 1 : 1 + AuthenticationMachine.staleLimit))
        }
    }

    @Test("A rejected nonce of an earlier call is replaced once, even without stale=true")
    func oldNonce() async throws {
        let settings = AuthenticationSettings(credentials: .digest(user: "u", password: "p"))
        var scene = AuthenticationScene(settings)
        _ = try await scene.sent("http://a/")
        _ = try await scene.isResent("http://a/", after: digest)
        _ = try await scene.sent("http://a/")
        try await scene.accept("http://a/")
        var later = AuthenticationScene(settings, memory: scene.memory)
        #expect(try await later.sent("http://a/") != nil)
        #expect(try await later.isResent("http://a/", after: "Digest realm=r, nonce=n2, qop=auth"))
        #expect(try #require(try await later.sent("http://a/")).contains(#"nonce="n2""#))
        #expect(try await !later.isResent("http://a/", after: "Digest realm=r, nonce=n3, qop=auth"))
    }

    @Test("The nextnonce of a response is used for the next request")
    func nextNonce() async throws {
        let settings = AuthenticationSettings(credentials: .digest(user: "u", password: "p"))
        var scene = AuthenticationScene(settings)
        _ = try await scene.sent("http://a/")
        _ = try await scene.isResent("http://a/", after: digest)
        _ = try await scene.sent("http://a/")
        try await scene.accept("http://a/", #"nextnonce="n2""#)
        let sent = try #require(try await scene.sent("http://a/"))
        #expect(sent.contains(#"nonce="n2""#) && sent.contains("nc=00000001,"))
        // A nextnonce for a nonce that is no longer in use is ignored.
        var table = ProtectionSpaceTable()
        let key = AuthenticationKey(
            party: .origin, origin: try HTTPURL("http://a").origin,
            credentials: .digest(user: "u", password: "p"))
        let known = try #require(DigestChallenge(challenge(digest)))
        table.recordDigest(
            key, DigestSession(challenge: known, clientNonce: [], key: []), extent: .whole)
        table.renew(key, realm: Array("r".utf8), used: Array("n0".utf8), next: Array("n9".utf8))
        guard case .digest(let session, let count) = table.answer(for: key, path: "/") else {
            Issue.record("nothing is known")
            return
        }
        #expect(session.nonce == Array("n1".utf8) && count == 2)
    }

    @Test("A session algorithm keeps its key and client nonce when the nonce changes")
    func sessionKey() async throws {
        var scene = AuthenticationScene(
            AuthenticationSettings(credentials: .digest(user: "u", password: "p")))
        _ = try await scene.sent("http://a/")
        _ = try await scene.isResent("http://a/", after: "\(digest), algorithm=MD5-sess")
        _ = try await scene.sent("http://a/")
        try await scene.accept("http://a/", "nextnonce=n2")
        let sent = try #require(try await scene.sent("http://a/"))
        func hash(_ text: String) throws -> String {
            String(
                decoding: MessageDigest.hexadecimal(try MessageDigest.digest(.md5, of: text.utf8)),
                as: UTF8.self)
        }
        let key = try hash("\(hash("u:r:p")):n1:cnonce")
        let response = try hash("\(key):n2:00000001:cnonce:auth:\(hash("GET:/"))")
        #expect(sent.contains("response=\"\(response)\""))
    }

    @Test("A correct or empty rspauth is accepted, and a wrong one is an authentication error")
    func mutual() async throws {
        let settings = AuthenticationSettings(credentials: .digest(user: "user", password: "pass"))
        for (proof, isBelieved) in [("6f867444023e7000901dc470e02a68f6", true), ("00", false), ("", true)] {
            var scene = AuthenticationScene(settings)
            _ = try await scene.sent("http://a/a")
            _ = try await scene.isResent("http://a/a", after: #"Digest realm="realm", nonce="n1", qop=auth"#)
            _ = try await scene.sent("http://a/a")
            do {
                try await scene.accept(
                    "http://a/a", #"rspauth="\#(proof)", cnonce="cnonce", nc=00000001, qop=auth"#)
                #expect(isBelieved)
                #expect(scene.memory.withTable { $0.count } == 1)
            } catch let error as AuthenticationError {
                #expect(!isBelieved && "\(error)".contains("http://a:80"))
                #expect(scene.memory.withTable { $0.count } == 0)
            }
        }
    }

    @Test("The domain parameter limits preemptive use of a nonce, and other origins in it are ignored")
    func domain() async throws {
        let settings = AuthenticationSettings(credentials: .digest(user: "u", password: "p"))
        var scene = AuthenticationScene(settings)
        _ = try await scene.sent("http://a/x/1")
        _ = try await scene.isResent(
            "http://a/x/1", after: #"\#(digest), domain="/x http://a/y http://b/ //b/ /z?q ::""#)
        _ = try await scene.sent("http://a/x/1")
        for (path, isUsed) in [
            ("x/2", true), ("xy", true), ("y/1", true), ("z", false), ("z?q=1", true), ("", false),
        ] {
            #expect(try await (scene.sent("http://a/\(path)") != nil) == isUsed, "\(path)")
        }
        #expect(try await scene.sent("http://b/x/2") == nil)
    }

    @Test(
        "The body is hashed for auth-int if it is known, and otherwise the challenge is not used"
    )
    func bodies() async throws {
        let field = [("WWW-Authenticate", #"Digest realm="r", nonce="n", qop="auth-int""#)]
        for body in [AuthenticatedBody.bytes(Array("body".utf8)), .unknown] {
            var scene = AuthenticationScene(
                AuthenticationSettings(credentials: .any(user: "u", password: "p")))
            let request = try AuthenticationScene.request("http://a/", "PUT", body: body)
            _ = try await scene.sent(request)
            #expect(try await scene.isResent(request, after: 401, field) == body.isKnown)
            if body.isKnown { #expect(try #require(try await scene.sent(request)).contains("qop=auth-int")) }
        }
    }

    @Test("A body that cannot be resent leaves the 401 as the response, and the handler is not called")
    func notRepeatable() async throws {
        let script = HandlerScript([.any(user: "u", password: "p")])
        var scene = AuthenticationScene(
            AuthenticationSettings(credentials: .any(user: "u", password: "p"), handler: script.handler))
        let request = try AuthenticationScene.request("http://a/", "PUT", isRepeatable: false)
        _ = try await scene.sent(request)
        #expect(try await !scene.isResent(request, after: 401, [("WWW-Authenticate", digest)]))
        #expect(script.asked.isEmpty)
    }

    @Test("A malformed challenge is ignored, and a valid one next to it is used")
    func malformed() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(credentials: .any(user: "u", password: "p")))
        _ = try await scene.sent("http://a/")
        #expect(try await !scene.isResent("http://a/", after: #"Digest realm="r", nonce="n"#))
        _ = try await scene.sent("http://a/")
        #expect(try await scene.isResent("http://a/", after: #"Digest realm="r", nonce="n"#, basic))
        #expect(try await scene.sent("http://a/") == "Basic dTpw")
    }

    // MARK: Handler

    @Test(
        "A handler gets the challenges and is called again after a rejection, at most three times")
    func handlerLimit() async throws {
        let script = HandlerScript(
            (1...9).map { .basic(user: "u\($0)", password: "p") })
        var scene = AuthenticationScene(AuthenticationSettings(handler: script.handler))
        #expect(try await scene.sent("http://a/") == nil)
        var rounds = 0
        while rounds < 20, try await scene.isResent("http://a/", after: basic, "A \"") {
            rounds += 1
            #expect(try await scene.sent("http://a/") != nil)
        }
        #expect(rounds == 3)
        #expect(script.asked.map(\.failureCount) == [0, 1, 2])
        #expect(script.asked.map(\.rejectedUser) == [nil, "u1", "u2"])
        let challenge = try #require(script.asked.first)
        #expect(challenge.realm == "r" && challenge.offers("BASIC") && challenge.errors.count == 1)
        #expect(challenge.party == .origin && challenge.origin.description == "http://a:80")
    }

    @Test("A handler that returns nil leaves the 401 as the response, and its error fails the call")
    func handlerDeclines() async throws {
        var scene = AuthenticationScene(AuthenticationSettings(handler: { _ in nil }))
        _ = try await scene.sent("http://a/")
        #expect(try await !scene.isResent("http://a/", after: basic))
        struct Own: Error {}
        var throwing = AuthenticationScene(AuthenticationSettings(handler: { _ in throw Own() }))
        _ = try await throwing.sent("http://a/")
        await #expect(throws: Own.self) { try await throwing.isResent("http://a/", after: self.basic) }
    }

    @Test(
        "The handler is called when the given credentials are rejected or fit no challenge"
    )
    func handlerLast() async throws {
        for credentials in [Credentials.basic(user: "u", password: "p"), .digest(user: "u", password: "p")] {
            let script = HandlerScript([.any(user: "v", password: "q")])
            var scene = AuthenticationScene(
                AuthenticationSettings(credentials: credentials, handler: script.handler))
            _ = try await scene.sent("http://a/")
            #expect(try await scene.isResent("http://a/", after: basic))
            #expect(try await scene.sent("http://a/") == "Basic djpx")
            #expect(script.asked.count == 1)
        }
    }

    @Test("Credentials of a handler that fit no offered scheme are not sent")
    func handlerMisses() async throws {
        let script = HandlerScript([.digest(user: "v", password: "q")])
        var scene = AuthenticationScene(AuthenticationSettings(handler: script.handler))
        _ = try await scene.sent("http://a/")
        #expect(try await !scene.isResent("http://a/", after: basic))
        #expect(try await scene.sent("http://a/") == nil)
    }

    // MARK: Proxy

    @Test("A proxy uses its own fields and status, and shares no state with an origin")
    func proxy() async throws {
        let credentials = Credentials.digest(user: "u", password: "p")
        var origin = AuthenticationScene(AuthenticationSettings(credentials: credentials))
        _ = try await origin.sent("http://a/")
        _ = try await origin.isResent("http://a/", after: digest)
        _ = try await origin.sent("http://a/")
        try await origin.accept("http://a/")
        var proxy = AuthenticationScene(
            AuthenticationSettings(credentials: credentials), party: .proxy, memory: origin.memory)
        var request = try AuthenticationScene.request("http://a/", "CONNECT")
        request.target = "b:443"
        #expect(try await proxy.sent(request) == nil)
        #expect(try await !proxy.isResent(request, after: 401, [("WWW-Authenticate", digest)]))
        #expect(try await !proxy.isResent(request, after: 407, [("WWW-Authenticate", digest)]))
        #expect(
            try await proxy.isResent(
                request, after: 407, [("Proxy-Authenticate", "\(digest), domain=\"/elsewhere\"")]))
        let sent = try #require(try await proxy.sent(request))
        #expect(sent.contains(#"uri="b:443""#))
        // All targets of a proxy are one protection space.
        request.target = "c:443"
        #expect(try #require(try await proxy.sent(request)).contains("nc=00000002,"))
    }

    @Test("A netrc file is not used for proxies")
    func proxyNetrc() async throws {
        var proxy = AuthenticationScene(
            AuthenticationSettings(netrc: try NetrcFile("default login u password p")), party: .proxy)
        #expect(try await proxy.sent("http://a/") == nil)
    }
}
