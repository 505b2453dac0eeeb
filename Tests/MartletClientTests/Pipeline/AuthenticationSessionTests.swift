import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import Testing

@Suite("Authentication of calls")
struct AuthenticationSessionTests {
    private static let basic = OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])

    @Test("A 401 without credentials is a normal response")
    func none() async throws {
        try await TestOrigin.withOrigin { _ in
            AuthenticationSessionTests.basic
        } run: { origin async throws in
            #expect(try await HTTPSession.own().get(origin.url()).statusCode == 401)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("The handler is called at most three times, and then the 401 is returned")
    func handler() async throws {
        let counter = Mutex(0)
        try await TestOrigin.withOrigin { _ in
            AuthenticationSessionTests.basic
        } run: { origin async throws in
            let session = HTTPSession.own { configuration in
                configuration.authentication.handler = { challenge in
                    #expect(challenge.realm == "x")
                    counter.withLock { $0 += 1 }
                    return .basic(user: "u", password: "wrong")
                }
            }
            #expect(try await session.get(origin.url()).statusCode == 401)
        }
        #expect(counter.withLock { $0 } <= 3)
        #expect(counter.withLock { $0 } >= 1)
    }

    @Test("A failed request of a token provider fails the call with an error that contains the call's request")
    func failedRefresh() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/token"
                ? OriginResponse(500) : OriginResponse(401, headers: ["WWW-Authenticate": "Bearer"])
        } run: { origin async throws in
            let plain = HTTPSession.own()
            let session = plain.with {
                $0.authentication = .bearer {
                    try await plain.post(origin.url("/token"), validate: .success).text
                }
            }
            let error = try #require(await #expect(throws: HTTPError.self) { try await session.get(origin.url("/a")) })
            #expect(error.code == .authenticationFailed && error.method == .get && error.url?.path == "/a")
            let cause = try #require(error.underlying as? HTTPError)
            #expect(cause.status == 500 && cause.url?.path == "/token" && cause.callNumber != error.callNumber)
            #expect(error.description.contains("/token"))
        }
    }

    /// Replies to each challenge with wrong credentials.
    private struct Wrong: SessionDelegate {
        func respond(
            to challenge: AuthenticationChallenge, in context: CallContext
        ) async throws -> ChallengeDisposition { .credentials(.basic(user: "u", password: "wrong")) }
    }

    @Test("The attempt limit also counts the delegate's replies", arguments: [1, 2, 5])
    func limitWithDelegate(_ limit: Int) async throws {
        try await TestOrigin.withOrigin { _ in
            AuthenticationSessionTests.basic
        } run: { origin async throws in
            let session = HTTPSession.own { configuration in
                configuration.delegate = Wrong()
                configuration.authentication.attemptLimit = limit
            }
            #expect(try await session.get(origin.url()).statusCode == 401)
            #expect(origin.requests.count == limit + 1)
        }
    }

    @Test("The handler's credentials are sent, and the metrics contain the challenge")
    func accepted() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["Authorization"] == "Basic dTpw" ? .text("in") : AuthenticationSessionTests.basic
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.authentication.handler = { _ in .basic(user: "u", password: "p") }
            }
            let exchange = try await session.get(origin.url())
            #expect(exchange.text == "in")
            #expect(exchange.metrics.hops.map(\.reason) == [.challenge])
            #expect(origin.connectionCount == 1)
        }
    }

    private struct Provider: TokenProvider {
        let refreshed = Counter()
        func token() async throws -> String { "old" }
        func refresh(after token: String) async throws -> String {
            refreshed.add()
            return "new"
        }
    }

    @Test("A hundred calls that receive a 401 refresh the token once")
    func singleFlight() async throws {
        let provider = Provider()
        try await TestOrigin.withOrigin { request in
            request.headers["Authorization"] == "Bearer new" ? .text("in") : OriginResponse(401)
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.authentication.tokens = SingleFlightTokens(provider)
                $0.pool.connectionsPerHost = 16
            }
            let url = origin.url()
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<100 { group.addTask { try await session.get(url).text } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "in", count: 100))
        }
        #expect(provider.refreshed.count == 1)
    }

    @Test("A one-shot body is not sent again after a 401, which is returned")
    func once() async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectText()
            return AuthenticationSessionTests.basic
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.authentication.handler = { _ in .basic(user: "u", password: "p") }
            }
            let exchange = try await session.post(origin.url(), body: .once(Pieces("hello"), length: 5))
            #expect(exchange.statusCode == 401)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A field set by the caller is sent unchanged")
    func ownField() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Authorization"] ?? "-")
        } run: { origin async throws in
            let session = HTTPSession.own { $0.authentication.credentials = .basic(user: "u", password: "p") }
            var request = try HTTPRequest(method: .get, url: origin.url())
            #expect(try await session.send(request).text == "Basic dTpw")
            request.headerFields[.authorization] = "Mine x"
            #expect(try await session.send(request).text == "Mine x")
        }
    }

    @Test("A server proves its identity in each response, and a response from the cache is not such a proof")
    func storedProof() async throws {
        @Sendable func hash(_ text: String) throws -> String {
            String(decoding: MessageDigest.hexadecimal(try MessageDigest.digest(.md5, of: text.utf8)), as: UTF8.self)
        }
        try await TestOrigin.withOrigin { request in
            guard let sent = request.headers["Authorization"] else {
                return OriginResponse(401, headers: ["WWW-Authenticate": "Digest realm=r, nonce=n, qop=\"auth\""])
            }
            func parameter(_ name: String) -> String {
                let field = sent.split { ", ".contains($0) }.first { $0.hasPrefix("\(name)=") } ?? ""
                return field.dropFirst(name.count + 1).filter { $0 != "\"" }
            }
            let (count, nonce) = (parameter("nc"), parameter("cnonce"))
            let proof = try hash("\(hash("u:r:p")):n:\(count):\(nonce):auth:\(hash(":\(request.target)"))")
            return OriginResponse(
                200,
                headers: [
                    "Cache-Control": "max-age=600",
                    "Authentication-Info": "rspauth=\"\(proof)\", cnonce=\"\(nonce)\", nc=\(count), qop=auth",
                ], body: .text("ok"))
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.cache = .memoryOnly()
                $0.authentication.credentials = .digest(user: "u", password: "p")
            }
            for source in [HTTPExchange.Source.network, .cache, .cache] {
                let exchange = try await session.get(origin.url("/a"))
                #expect(exchange.text == "ok" && exchange.source == source)
            }
            #expect(try await session.get(origin.url("/b")).text == "ok")
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A rejected token is replaced for later requests, even if the body of its request cannot be sent again")
    func onceWithToken() async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectText()
            return request.headers["Authorization"] == "Bearer new" ? .text("ok") : OriginResponse(401)
        } run: { origin async throws in
            let session = HTTPSession.own { $0.authentication = .bearer("old") { "new" } }
            for status in [401, 200] {
                let exchange = try await session.post(origin.url(), body: .once(Pieces("hello"), length: 5))
                #expect(exchange.statusCode == status)
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Secret trailers, and those of a host, are not sent to another origin")
    func trailers() async throws {
        let seen = Mutex<[OriginFields]>([])
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectText()
            let trailers = request.body.trailers
            seen.withLock { $0.append(trailers) }
            return .text("there")
        } run: { other async throws in
            let place = other.url("/")
            try await TestOrigin.withOrigin { request in
                _ = try await request.collectText()
                return .redirect(to: place, status: 307)
            } run: { home async throws in
                let name = try #require(HTTPField.Name("X-Signature"))
                let session = HTTPSession.own { $0.redirects.secretFields = [name] }
                var options = RequestOptions()
                options.trailers = ["X-Signature": "secret", "X-Sum": "6"]
                let body = HTTPBody.stream { Pieces("hello") }
                #expect(try await session.post(home.url(), body: body, options: options).text == "there")
                let api = try HTTPSession.own().host(home.base).with { $0.options.trailers = ["X-Key": "secret"] }
                #expect(try await api.post("x", body: body).text == "there")
            }
        }
        #expect(seen.withLock { $0.map { $0.map(\.name) } } == [["X-Sum"], []])
    }
}
