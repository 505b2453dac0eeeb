import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

/// The middleware below the cache: it sees the requests that reach the network, and only those.
@Suite("Network middleware", .timeLimit(.minutes(20)))
struct NetworkMiddlewareTests {
    /// Returns a middleware that counts its requests and sends each with a number of its own in a field.
    private static func signing(_ counter: Counter, _ name: String = "X-Signature") -> ClosureMiddleware {
        ClosureMiddleware { request, _, next in
            var request = request
            request.headers[name] = "signature \(counter.next())"
            return try await next(request)
        }
    }

    /// Returns a middleware that counts its requests.
    private static func counting(_ counter: Counter) -> ClosureMiddleware {
        ClosureMiddleware { request, _, next in
            counter.add()
            return try await next(request)
        }
    }

    private static let credentials = Credentials.basic(user: "u", password: "p")

    @Test("Responses from the cache pass only the middleware before it, also if a signature changes each time")
    func hits() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.headers["Authorization"] ?? "none")
        } run: { origin async throws in
            let (above, below) = (Counter(), Counter())
            let (session, _) = try CacheScene.session {
                $0.middleware = [Self.counting(above)]
                $0.networkMiddleware = [Self.signing(below, "Authorization")]
            }
            for _ in 1...3 { #expect(try await session.get(origin.url()).text == "signature 1") }
            #expect(try await session.get(origin.url("/other")).text == "signature 2")
            #expect(above.count == 4 && below.count == 2 && origin.requests.count == 2)
            // Before the cache, the same signature makes each request one of another user.
            let other = session.with { $0.middleware = [Self.signing(Counter(), "Authorization")] }
            #expect(try await other.get(origin.url()).source == .network)
        }
    }

    @Test("Without a cache it runs for each request, also one that is repeated with credentials")
    func withoutCache() async throws {
        try await TestOrigin.withOrigin { request in
            guard request.headers["Authorization"] != nil else {
                return OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            }
            return .text(request.headers["X-Signature"] ?? "none")
        } run: { origin async throws in
            let (above, below) = (Counter(), Counter())
            let session = HTTPSession.own {
                $0.authentication.handler = { _ in Self.credentials }
                $0.middleware = [Self.counting(above)]
                $0.networkMiddleware = [Self.signing(below)]
            }
            let exchange = try await session.get(origin.url())
            #expect(exchange.text == "signature 2" && exchange.metrics.hops.map(\.reason) == [.challenge])
            #expect(above.count == 1 && below.count == 2 && origin.requests.count == 2)
        }
    }

    @Test("Calls that share a transfer run it once, and views with other network middleware do not share")
    func shared() async throws {
        let (first, second) = (Counter(), Counter())
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("x")
        } _: { origin, signals async throws in
            let (session, _) = try CacheScene.session { $0.networkMiddleware = [Self.counting(first)] }
            let view = session.with { $0.networkMiddleware = [Self.counting(second)] }
            let url = origin.url()
            try await withThrowingTaskGroup(of: String.self) { group in
                for session in [session, session, session, view, view] {
                    group.addTask { try await session.get(url).text }
                }
                try await origin.waitForRequests(count: 2)
                signals.raise("go")
                for try await text in group { #expect(text == "x") }
            }
            #expect(first.count == 1 && second.count == 1 && origin.requests.count == 2)
        }
    }

    @Test("A validation in the background runs it")
    func background() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.stale("x", CacheScene.staleWhileRevalidate)
        } run: { origin async throws in
            let below = Counter()
            let (session, _) = try CacheScene.session { $0.networkMiddleware = [Self.signing(below)] }
            _ = try await session.get(origin.url())
            #expect(try await session.get(origin.url()).source == .staleCache)
            let requests = try await origin.waitForRequests(count: 2)
            #expect(requests.map { $0.headers["X-Signature"] } == ["signature 1", "signature 2"])
        }
    }

    @Test(
        "A request that is changed below or between Martlet's stages keeps its credentials, cookies and conditions",
        arguments: [StagePosition.request, .authentication, .cookies, .cache, nil])
    func keeps(_ position: StagePosition?) async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["If-None-Match"] == nil
                ? CacheScene.answer("x", "max-age=0", ["ETag": "\"1\"", "Set-Cookie": "a=b"]) : OriginResponse(304)
        } run: { origin async throws in
            let signing = Self.signing(Counter())
            let (session, _) = try CacheScene.session {
                $0.authentication.credentials = Self.credentials
                $0.cookies = CookieJar()
                switch position {
                case .request: $0[SignedAtRequest.self] = signing
                case .authentication: $0[SignedAtAuthentication.self] = signing
                case .cookies: $0[SignedAtCookies.self] = signing
                case .cache: $0[SignedAtCache.self] = signing
                case nil: $0.networkMiddleware = [signing]
                }
            }
            #expect(try await session.get(origin.url()).source == .network)
            let second = try await session.get(origin.url())
            #expect(second.source == .validatedCache && second.text == "x")
            let sent = try #require(origin.requests.last)
            #expect(sent.headers["Authorization"] == "Basic dTpw" && sent.headers["Cookie"] == "a=b")
            #expect(sent.headers["If-None-Match"] == "\"1\"" && sent.headers["X-Signature"] != nil)
        }
    }

    @Test("A request that is moved to another origin loses the credentials and the cookies of the first")
    func moved() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { other in
            try await TestOrigin.withOrigin(
                handler: .fixed(OriginResponse(headers: ["Set-Cookie": "a=b"], body: .text("y")))
            ) { origin in
                let target = try HTTPURL(other.url())
                let moving = ClosureMiddleware { request, _, next in
                    guard request.url?.path == "/moved" else { return try await next(request) }
                    return try await next(HTTPCall.Request(HTTPRequest(method: .get, url: target)))
                }
                let session = HTTPSession.own {
                    $0.authentication.credentials = Self.credentials
                    $0.cookies = CookieJar()
                    $0.networkMiddleware = [moving]
                }
                _ = try await session.get(origin.url("/"))
                #expect(try await session.get(origin.url("/moved")).text == "x")
                let sent = try #require(other.requests.first)
                #expect(sent.headers["Authorization"] == nil && sent.headers["Cookie"] == nil)
            }
        }
    }

    @Test(
        "A body that it replaces is delivered, and stored if the fields allow it",
        arguments: ["max-age=600", "no-store"])
    func replaced(_ control: String) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.encoded(StoredCoding.gzip(Array("text".utf8)), coding: "gzip").with {
                $0.headers.append("Cache-Control", control)
            }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session {
                $0.networkMiddleware = [
                    ClosureMiddleware { request, _, next in
                        var response = try await next(request)
                        let text = try await response.body?.text() ?? ""
                        response.setBody(Array("\(text), longer than before".utf8))
                        return response
                    }
                ]
            }
            for source in [HTTPExchange.Source.network, control == "no-store" ? .network : .cache] {
                let exchange = try await session.get(origin.url())
                #expect(exchange.text == "text, longer than before" && exchange.source == source)
            }
        }
    }

    @Test(
        "A cancelled call ends although its network middleware never returns, or the body that it made never ends",
        arguments: [true, false], ["max-age=600", "no-store"])
    func cancelled(hasHead: Bool, _ control: String) async throws {
        let entered = Counter()
        let held = OneShot<Void>()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("x", control)
        } run: { origin async throws in
            defer { held.fulfill(()) }
            let (session, _) = try CacheScene.session {
                $0.networkMiddleware = [
                    ClosureMiddleware { request, _, next in
                        var response = try await next(request)
                        let endless = AsyncStream<[UInt8]>(unfolding: {
                            if entered.next() == 1 { return [1] }
                            // The wait ignores cancellation.
                            _ = await held.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
                            return nil
                        })
                        if hasHead { response.setBody(endless) } else { for await _ in endless {} }
                        return response
                    }
                ]
            }
            let url = origin.url()
            let call = Task { try await session.get(url) }
            #expect(await eventually(within: TestTimeouts.long) { entered.count == 2 })
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(await eventually(within: TestTimeouts.long) { session.runningCallCount == 0 })
        }
    }

    @Test("Another call of next in network middleware is a request of the same call", arguments: [true, false])
    func repeated(hasCache: Bool) async throws {
        let count = Counter()
        try await TestOrigin.withOrigin { _ in
            count.next() == 1 ? .status(503) : CacheScene.answer("x")
        } run: { origin async throws in
            let session = HTTPSession.own {
                if hasCache { $0.cache = .memoryOnly(.mebibytes(1), options: .withoutPressure) }
                $0.networkMiddleware = [
                    ClosureMiddleware { request, _, next in
                        let response = try await next(request)
                        return response.status == .serviceUnavailable ? try await next(request) : response
                    }
                ]
            }
            #expect(try await session.get(origin.url()).text == "x")
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Its context has the counts of the call, with and without a cache", arguments: [true, false])
    func context(hasCache: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b") : .text(request.headers["X-Counts"] ?? "none")
        } run: { origin async throws in
            let session = HTTPSession.own {
                if hasCache { $0.cache = .memoryOnly(.mebibytes(1), options: .withoutPressure) }
                $0.networkMiddleware = [
                    ClosureMiddleware { request, context, next in
                        var request = request
                        request.headers["X-Counts"] = "\(context.sentCount)/\(context.redirectCount)"
                        return try await next(request)
                    }
                ]
            }
            #expect(try await session.get(origin.url("/a")).text == "1/1")
            #expect(origin.requests.first?.headers["X-Counts"] == "0/0")
        }
    }

    @Test("It observes the events of each call")
    func observes() async throws {
        final class Observing: ObservingMiddleware {
            let count = Counter()

            func observe(_ event: SessionEvent, in context: CallContext) {
                if case .finished = event.kind { count.add() }
            }
        }
        try await TestOrigin.withOrigin(handler: .fixed(CacheScene.answer("x"))) { origin in
            let observing = Observing()
            let (session, _) = try CacheScene.session { $0.networkMiddleware = [observing] }
            for _ in 1...2 { _ = try await session.get(origin.url()) }
            #expect(observing.count.count == 2)
        }
    }
}

/// Features at each position whose middleware is the value of the setting.
private protocol SignatureKey: FeatureKey where Value == ClosureMiddleware? {}

extension SignatureKey {
    static var defaultValue: ClosureMiddleware? { nil }

    static func middleware(for value: ClosureMiddleware?) -> (any HTTPMiddleware)? { value }
}

private enum SignedAtRequest: SignatureKey {
    static var position: StagePosition { .request }
}

private enum SignedAtAuthentication: SignatureKey {
    static var position: StagePosition { .authentication }
}

private enum SignedAtCookies: SignatureKey {
    static var position: StagePosition { .cookies }
}

private enum SignedAtCache: SignatureKey {
    static var position: StagePosition { .cache }
}
