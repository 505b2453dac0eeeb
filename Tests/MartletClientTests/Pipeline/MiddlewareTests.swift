import FoundationEssentials
import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage
import Testing

@Suite("Middleware")
struct MiddlewareTests {
    /// A middleware made of a closure.
    private struct Step: HTTPMiddleware {
        let body: @Sendable (HTTPCall.Request, CallContext, HTTPNext) async throws -> HTTPCall.Response

        init(
            _ body:
                @escaping @Sendable (
                    HTTPCall.Request, CallContext, HTTPNext
                ) async throws -> HTTPCall.Response
        ) {
            self.body = body
        }

        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            try await body(request, context, next)
        }
    }

    private static let trace = HTTPField.Name("X-Trace") ?? .accept

    // MARK: Requests

    @Test("Each request that a redirect leads to is handled")
    func redirects() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b") : .text(request.fields["X-Trace"] ?? "-")
        } run: { origin async throws in
            let step = Step { request, context, next in
                var request = request
                request.headers[Self.trace] =
                    "\(context.sentCount)/\(context.redirectCount) \(request.head.path ?? "")"
                return try await next(request)
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            #expect(try await session.get(origin.url("/a")).text == "1/1 /b")
            #expect(origin.requests.first?.fields["X-Trace"] == "0/0 /a")
        }
    }

    @Test("The first of the list is the outermost, on the way out and back")
    func order() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.fields["X-Trace"] ?? "-")
        } run: { origin async throws in
            let seen = Mutex<[String]>([])
            func step(_ name: String) -> Step {
                Step { request, _, next in
                    var request = request
                    request.headers[Self.trace] = (request.headers[Self.trace] ?? "") + name
                    let response = try await next(request)
                    seen.withLock { $0.append(name) }
                    return response
                }
            }
            let session = HTTPSession.own { $0.middleware = [step("a"), step("b"), step("c")] }
            #expect(try await session.get(origin.url()).text == "abc")
            #expect(seen.withLock { $0 } == ["c", "b", "a"])
        }
    }

    @Test("The body of a request can be read, signed and replaced")
    func requestBody() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .mirror) { (origin) async throws in
            let step = Step { request, _, next in
                var request = request
                let bytes = try await request.body.collect()
                request.headers[Self.trace] = "\(bytes.count) bytes"
                request.body = .bytes(bytes.reversed(), contentType: request.body.contentType)
                return try await next(request)
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let exchange = try await session.post(origin.url(), body: .text("stressed"))
            #expect(exchange.text == "desserts")
            #expect(origin.requests.last?.fields["X-Trace"] == "8 bytes")
            #expect(origin.requests.last?.fields["Content-Type"] == "text/plain; charset=utf-8")
        }
    }

    @Test("A body that can be read only once cannot be collected before it is sent")
    func onceBody() async throws {
        let body = HTTPBody.once(AsyncStream<[UInt8]> { $0.finish() })
        let error = await #expect(throws: HTTPError.self) { try await body.collect() }
        #expect(error?.code == .bodyNotReplayable)
        let large = await #expect(throws: HTTPError.self) {
            try await HTTPBody.text("four").collect(upTo: .bytes(3))
        }
        #expect(large?.code == .bodyTooLarge)
    }

    private struct Refusal: Error, Equatable {}

    @Test("What one throws is what the call throws, and nothing is sent")
    func throwing() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own { configuration in
                configuration.middleware = [Step { _, _, _ in throw Refusal() }]
                configuration.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero))
            }
            await #expect(throws: Refusal()) { try await session.get(origin.url()) }
            #expect(origin.connectionCount == 0)
        }
    }

    // MARK: Responses

    @Test("One may answer without the network")
    func made() async throws {
        let step = Step { request, _, next in
            HTTPCall.Response(
                HTTPResponse(status: .accepted, headerFields: [.contentType: "text/plain"]),
                body: "made".utf8)
        }
        let session = HTTPSession.own { configuration in
            configuration.middleware = [step]
            configuration.cookies = CookieJar()
        }
        let exchange = try await session.get("http://nowhere.invalid/")
        #expect(exchange.text == "made")
        #expect(exchange.statusCode == 202)
        #expect(exchange.source == .middleware)
        #expect(exchange.metrics.hops.isEmpty)
        let streamed = try await session.stream(
            HTTPRequest(method: .get, url: "http://nowhere.invalid/")
        ) { response, body in
            try await body.collect()
        }
        #expect(String(decoding: streamed, as: UTF8.self) == "made")
    }

    @Test("A made response may be a redirect, and one that the retry policy retries")
    func madeStatuses() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("there")
        } run: { origin async throws in
            let target = origin.url("/b")
            let count = Counter()
            let step = Step { request, _, next in
                if request.head.path == "/b" {
                    return count.next() < 3
                        ? HTTPCall.Response(HTTPResponse(status: .serviceUnavailable))
                        : try await next(request)
                }
                return HTTPCall.Response(
                    HTTPResponse(status: .found, headerFields: [.location: target]))
            }
            let session = HTTPSession.own { configuration in
                configuration.middleware = [step]
                configuration.retry = .transient(maximumAttempts: 5, backoff: .constant(.zero))
            }
            let exchange = try await session.get(origin.url("/a"))
            #expect(exchange.text == "there")
            #expect(exchange.statusCode == 200)
            #expect(exchange.metrics.hops.map(\.reason).first == .redirect)
        }
    }

    @Test("Status, fields and body of a response can be changed")
    func changed() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("abc")
        } run: { origin async throws in
            let step = Step { request, _, next in
                var response = try await next(request)
                response.status = .accepted
                response.headers[Self.trace] = "seen"
                if let body = response.body { response.setBody(Doubled(body: body)) }
                return response
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let exchange = try await session.get(origin.url())
            #expect(exchange.text == "aabbcc")
            #expect(exchange.statusCode == 202)
            #expect(exchange.response.headerFields[Self.trace] == "seen")
            #expect(exchange.source == .network)
            #expect(exchange.metrics.receivedBodyByteCount == 3)
        }
    }

    /// Each byte of a body twice.
    private struct Doubled: AsyncSequence, Sendable {
        let body: ResponseBody

        struct Iterator: AsyncIteratorProtocol {
            var pieces: ResponseBody.Iterator

            mutating func next() async throws -> [UInt8]? {
                try await pieces.next()?.flatMap { [$0, $0] }
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(pieces: body.makeAsyncIterator()) }
    }

    @Test("A large body is wrapped as it arrives, and progress counts it once")
    func wrapped() async throws {
        let byteCount = 3_000_000
        try await TestOrigin.withOrigin { _ in
            .text(String(repeating: "x", count: byteCount))
        } run: { origin async throws in
            let step = Step { request, _, next in
                var response = try await next(request)
                if let body = response.body { response.setBody(Doubled(body: body)) }
                return response
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let newest = Mutex(TransferProgress?.none)
            let folder = try TemporaryFolder()
            let file = folder.path + "/file"
            try await session.download(
                HTTPRequest(method: .get, url: origin.url()), to: FilePath(file), overwrites: false
            ) { progress in newest.withLock { $0 = progress } }
            #expect(FileManager.default.contents(atPath: file)?.count == 2 * byteCount)
            #expect(newest.withLock { $0 }?.completedByteCount == UInt64(byteCount))
        }
    }

    @Test(
        "What one reads of a body the caller does not get, coded bodies included", arguments: [false, true])
    func partlyRead(_ isCoded: Bool) async throws {
        let text = String(repeating: "0123456789", count: 20_000)
        try await TestOrigin.withOrigin { _ in
            isCoded ? .encoded(Deflated.bytes(Array(text.utf8), as: .gzip), coding: "gzip") : .text(text)
        } run: { origin async throws in
            let taken = Mutex<[UInt8]>([])
            let step = Step { request, _, next in
                let response = try await next(request)
                var pieces = try #require(response.body).makeAsyncIterator()
                let piece = try #require(try await pieces.next())
                taken.withLock { $0 = piece }
                return response
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let exchange = try await session.get(origin.url())
            let beginning = taken.withLock { $0 }
            #expect(!beginning.isEmpty)
            #expect(String(decoding: beginning + exchange.bytes, as: UTF8.self) == text)
        }
    }

    // MARK: Sending again

    @Test(
        "One may send again: the response before is released first, and its connection carries the next")
    func again() async throws {
        try await TestOrigin.withOrigin { request in
            request.number < 3 ? .text("again", status: 202) : .text("done")
        } run: { origin async throws in
            let step = Step { request, _, next in
                var response = try await next(request)
                while response.status == .accepted { response = try await next(request) }
                return response
            }
            let session = HTTPSession.own { configuration in
                configuration.middleware = [step]
                configuration.pool.connectionsPerHost = 1
            }
            let exchange = try await session.get(origin.url())
            #expect(exchange.text == "done")
            #expect(exchange.metrics.hops.map(\.reason) == [.middleware, .middleware])
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("A response that was released is refused, and so is a second request beside the first")
    func misuse() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let released = Step { request, _, next in
                let first = try await next(request)
                _ = try await next(request)
                return first
            }
            let beside = Step { request, _, next in
                async let other = next(request)
                let response = try await next(request)
                _ = try await other
                return response
            }
            for step in [released, beside] {
                let session = HTTPSession.own { $0.middleware = [step] }
                let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
                #expect(error?.code == .invalidRequest)
                #expect(session.poolStatus.leased == 0)
            }
        }
    }

    @Test("A body that can be read only once is not sent twice")
    func sentTwice() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .mirror) { (origin) async throws in
            let step = Step { request, _, next in
                _ = try await next(request)
                return try await next(request)
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let pieces = AsyncStream<[UInt8]> { continuation in
                continuation.yield([1, 2, 3])
                continuation.finish()
            }
            let error = await #expect(throws: HTTPError.self) {
                try await session.post(origin.url(), body: .once(pieces))
            }
            #expect(error?.code == .bodyNotReplayable)
            #expect(try await session.post(origin.url(), body: .text("abc")).text == "abc")
        }
    }

    @Test("One sees failures, which the retry policy mends where it does not")
    func failures() async throws {
        let count = Counter()
        try await TestOrigin.withOrigin { request in
            count.next() < 3
                ? OriginResponse.text("x").with { $0.fault = OriginFault(.close) } : .text("done")
        } run: { origin async throws in
            let codes = Mutex<[HTTPError.Code]>([])
            let step = Step { request, _, next in
                do {
                    return try await next(request)
                } catch let error as HTTPError {
                    codes.withLock { $0.append(error.code) }
                    throw error
                }
            }
            let session = HTTPSession.own { configuration in
                configuration.middleware = [step]
                configuration.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero))
            }
            #expect(try await session.get(origin.url()).text == "done")
            #expect(codes.withLock { $0 }.count == 2)
        }
    }

    @Test("A failure of a call that a middleware makes for itself is not taken for one of the call's")
    func ownCalls() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/token"
                ? OriginResponse.text("x").with { $0.fault = OriginFault(.close) } : .text("done")
        } run: { origin async throws in
            let token = origin.url("/token")
            let plain = HTTPSession.own()
            let step = Step { request, _, next in
                _ = try await plain.get(token)
                return try await next(request)
            }
            let session = plain.with { configuration in
                configuration.middleware = [step]
                configuration.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero))
            }
            await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("One may call the same session and host, with a single connection there")
    func sameSession() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/token" ? .text("t0ken") : .text(request.fields["Authorization"] ?? "-")
        } run: { origin async throws in
            let token = origin.url("/token")
            let step = Step { request, _, next in
                var request = request
                guard request.head.path != "/token" else { return try await next(request) }
                let first = try await next(request)
                guard first.status == .ok, let session = SessionOfCall.session else { return first }
                request.headers[.authorization] = try await session.get(token).text
                return try await next(request)
            }
            let session = HTTPSession.own { configuration in
                configuration.middleware = [step]
                configuration.pool.connectionsPerHost = 1
            }
            let text = try await SessionOfCall.$session.withValue(session) {
                try await session.get(origin.url()).text
            }
            #expect(text == "t0ken")
        }
    }

    private enum SessionOfCall {
        @TaskLocal static var session: HTTPSession?
    }

    // MARK: Other origins

    @Test("A request that one sends elsewhere leaves the first origin's credentials behind")
    func rerouted() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.fields["Authorization"] ?? "-")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .text("home")
            } run: { home async throws in
                let target = try HTTPURL(foreign.url())
                let session = HTTPSession.own { configuration in
                    configuration.middleware = [
                        Step { request, _, next in
                            try await next(
                                HTTPCall.Request(
                                    HTTPRequest(
                                        method: request.head.method, url: target,
                                        headers: request.headers)))
                        }
                    ]
                    configuration.headers[.authorization] = "Bearer default"
                }
                var request = try HTTPRequest(method: .get, url: home.url())
                #expect(try await session.send(request).text == "-")
                request.headerFields[.authorization] = "Bearer mine"
                #expect(try await session.send(request).text == "-")
                #expect(home.connectionCount == 0)
            }
        }
    }

    @Test("Nor do the credentials of the session and of the URL go there, whatever redirects follow there")
    func reroutedCredentials() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a"
                ? .redirect(to: "/b")
                : .text("\(request.fields["Authorization"] ?? "-") \(request.fields["Cookie"] ?? "-")")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .text("home")
            } run: { home async throws in
                let place = try HTTPRequest(method: .get, url: home.url()).authority ?? ""
                let other = try HTTPRequest(method: .get, url: foreign.url()).authority
                let moving = Step { request, _, next in
                    var request = request
                    request.head.authority = other
                    return try await next(request)
                }
                let plain = HTTPSession.own { configuration in
                    configuration.middleware = [moving]
                    configuration.headers[.cookie] = "a=b"
                }
                let session = plain.with {
                    $0.authentication.credentials = .basic(user: "u", password: "p")
                }
                let own: HTTPHeaders = [.authorization: "Bearer mine"]
                for path in ["/a", "/b"] {
                    #expect(try await session.get(home.url(path)).text == "- -")
                    #expect(try await session.get(home.url(path), headers: own).text == "- -")
                    #expect(try await plain.get("http://u:p@\(place)\(path)").text == "- -")
                }
                #expect(home.connectionCount == 0)
            }
        }
    }

    // MARK: The end of a call

    @Test("Nothing is sent by a middleware whose call has ended, and what it has open is closed")
    func late() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let (entered, released, failed) = (OneShot<Void>(), OneShot<Void>(), OneShot<Void>())
            let loop = EventLoop.sharedOrStalled
            let step = Step { request, _, next in
                _ = try await next(request)
                entered.fulfill(())
                _ = await released.wait(until: .distantFuture, on: loop)
                do {
                    return try await next(request)
                } catch {
                    failed.fulfill(())
                    throw error
                }
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let task = Task { try await session.get(origin.url()) }
            _ = await entered.wait(until: .distantFuture, on: loop)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(session.poolStatus.leased == 0)
            released.fulfill(())
            _ = await failed.wait(until: .distantFuture, on: loop)
            #expect(origin.requests.count == 1)
        }
    }
}
