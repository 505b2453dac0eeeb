import FoundationEssentials
import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage
import Testing

@Suite("Middleware")
struct MiddlewareTests {
    private static let trace = HTTPField.Name("X-Trace") ?? .accept

    // MARK: Timeouts

    /// Expects that the total timeout ends a call in a phase after its request was sent.
    private static func expectTotalTimeout(
        _ session: HTTPSession, _ url: String, in phase: HTTPError.Phase,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withEnoughTime(from: .seconds(1), sourceLocation: sourceLocation) { total in
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await session.get(url, timeout: total) },
                sourceLocation: sourceLocation)
            #expect(error.timeout == .total, "\(error)", sourceLocation: sourceLocation)
            guard !error.phase.precedes(phase) else { return false }
            #expect(error.wasSent && error.phase == phase, "\(error)", sourceLocation: sourceLocation)
            return true
        }
    }

    @Test(
        "A total timeout while a server is silent reports that the request was sent, also through middleware",
        arguments: [0, 1, 3])
    func sentAtTimeout(count: Int) async throws {
        try await TestOrigin.withOrigin(handler: .fault(OriginFault(.stall))) { origin async throws in
            let session = HTTPSession.own {
                $0.middleware = (0..<count).map { _ in ClosureMiddleware { request, _, next in try await next(request) }
                }
            }
            try await Self.expectTotalTimeout(session, origin.url(), in: .awaitingHead)
        }
    }

    @Test("A total timeout while middleware reads the body of a response reports the body's phase")
    func sentAtTimeoutOfBody() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(100_000).with { $0.pacing = .bytesPerSecond(100) }
        } run: { origin async throws in
            let step = ClosureMiddleware { request, _, next in
                let response = try await next(request)
                _ = try await response.body?.collect()
                return response
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            try await Self.expectTotalTimeout(session, origin.url(), in: .receivingBody)
        }
    }

    @Test("A total timeout while middleware ignores the failure of its request reports that it was sent")
    func sentAtTimeoutOfSlowMiddleware() async throws {
        try await TestOrigin.withOrigin(handler: .fault(OriginFault(.stall))) { origin async throws in
            let step = ClosureMiddleware { request, _, next in
                if let response = try? await next(request) { return response }
                try await Task.sleep(for: .seconds(3600))
                return HTTPCall.Response(HTTPResponse(status: .ok))
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            try await Self.expectTotalTimeout(session, origin.url(), in: .awaitingHead)
        }
    }

    // MARK: Requests

    @Test("Middleware handles each request of a redirect chain")
    func redirects() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b") : .text(request.headers["X-Trace"] ?? "-")
        } run: { origin async throws in
            let step = ClosureMiddleware { request, context, next in
                var request = request
                request.headers[Self.trace] =
                    "\(context.sentCount)/\(context.redirectCount) \(request.head.path ?? "")"
                return try await next(request)
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            #expect(try await session.get(origin.url("/a")).text == "1/1 /b")
            #expect(origin.requests.first?.headers["X-Trace"] == "0/0 /a")
        }
    }

    private static func sum(_ bytes: [UInt8]) -> UInt64 { bytes.reduce(0) { $0 &* 31 &+ UInt64($1) } }

    @Test("Middleware reads the pieces of a body before it is sent, except of one that can be read only once")
    func pieces() async throws {
        let directory = try TemporaryDirectory()
        let content = [UInt8]((0..<700_000).map { UInt8(truncatingIfNeeded: $0 / 3) })
        try directory.write(content, to: "body")
        let path = directory.path("body")
        let digest = ClosureMiddleware { request, _, next in
            var (request, bytes) = (request, [UInt8]())
            for try await piece in request.body.pieces { bytes += piece }
            request.headers["X-Sum"] = "\(Self.sum(bytes))"
            return try await next(request)
        }
        let session = HTTPSession.own { $0.middleware = [digest] }
        let stream: @Sendable () -> AsyncStream<[UInt8]> = {
            AsyncStream { continuation in
                for piece in [[], content] { continuation.yield(piece) }
                continuation.finish()
            }
        }
        try await TestOrigin.withOrigin { request in
            let body = try await request.collectBody()
            return .text("\(request.headers["X-Sum"] == "\(Self.sum(body))") \(body.count)")
        } run: { origin async throws in
            for body in [HTTPBody.bytes(content), .file(path), .stream { stream() }] {
                #expect(try await session.put(origin.url(), body: body).text == "true 700000")
            }
            let form = HTTPBody.multipart([.file("file", at: path)])
            #expect(try await session.put(origin.url(), body: form).text.hasPrefix("true 700"))
            let error = await #expect(throws: HTTPError.self) {
                try await session.put(origin.url(), body: .once(stream()))
            }
            #expect(error?.code == .bodyNotReplayable && error?.wasSent == false)
        }
    }

    @Test("The first middleware of the list is the outermost for requests and responses")
    func order() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["X-Trace"] ?? "-")
        } run: { origin async throws in
            let seen = Mutex<[String]>([])
            func step(_ name: String) -> ClosureMiddleware {
                ClosureMiddleware { request, _, next in
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

    @Test("Middleware can read, sign and replace a request's body")
    func requestBody() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .mirror) { (origin) async throws in
            let step = ClosureMiddleware { request, _, next in
                var request = request
                let bytes = try await request.body.collect()
                request.headers[Self.trace] = "\(bytes.count) bytes"
                request.body = .bytes(bytes.reversed(), contentType: request.body.contentType)
                return try await next(request)
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let exchange = try await session.post(origin.url(), body: .text("stressed"))
            #expect(exchange.text == "desserts")
            #expect(origin.requests.last?.headers["X-Trace"] == "8 bytes")
            #expect(origin.requests.last?.headers["Content-Type"] == "text/plain; charset=utf-8")
        }
    }

    @Test("Middleware cannot collect a one-shot body before it is sent")
    func onceBody() async throws {
        let body = HTTPBody.once(AsyncStream<[UInt8]> { $0.finish() })
        let error = await #expect(throws: HTTPError.self) { try await body.collect() }
        #expect(error?.code == .bodyNotReplayable)
        let large = await #expect(throws: HTTPError.self) {
            try await HTTPBody.text("four").collect(upTo: .bytes(3))
        }
        #expect(large?.code == .bodyTooLarge)
    }

    @Test("Middleware reads the URL of its request without user info, also after it has changed the head")
    func requestURL() async throws {
        let step = ClosureMiddleware { request, _, _ in
            var (changed, invalid) = (request, request)
            changed.head.path = "/b"
            invalid.head.scheme = "ftp"
            let urls = [request.url, changed.url, invalid.url].map { $0?.absoluteString ?? "-" }
            return HTTPCall.Response(HTTPResponse(status: .ok), body: urls.joined(separator: " ").utf8)
        }
        let session = HTTPSession.own { $0.middleware = [step] }
        let text = try await session.get("http://me:hunter2@a.test:81/a?x=1#part").text
        #expect(text == "http://a.test:81/a?x=1 http://a.test:81/b -")
    }

    @Test("Middleware sets header fields with strings and with constants")
    func headerFields() async throws {
        try await TestOrigin.withOrigin { request in
            .text("\(request.headers["X-Trace"] ?? "-") \(request.headers["Authorization"] ?? "-")")
        } run: { origin async throws in
            let step = ClosureMiddleware { request, _, next in
                var request = request
                request.headers["X-Trace"] = "7"
                request.headers[.authorization] = "Key k"
                request.headers["accept"] = nil
                return try await next(request)
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            #expect(try await session.get(origin.url(), headers: [.accept: "a/b"]).text == "7 Key k")
            #expect(origin.requests.last?.headers["Accept"] != "a/b")
        }
    }

    @Test(
        "A header field of middleware that cannot be sent fails its request before anything is sent",
        arguments: ["hunter2\r\nX-B: c", "hunter2\n", "hunter2\0"])
    func invalidHeaderField(_ value: String) async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["X-Trace"] ?? "-")
        } run: { origin async throws in
            let rejected = ClosureMiddleware { request, _, next in
                var request = request
                request.headers["X-Trace"] = value
                return try await next(request)
            }
            let session = HTTPSession.own { $0.middleware = [rejected] }
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url("/a")) }
            #expect(error?.code == .invalidHeader && error?.phase == .preparing && error?.wasSent == false)
            #expect(error?.method == .get && error?.url?.path == "/a")
            #expect(error?.message.contains("X-Trace") == true && error?.message.contains("hunter2") == false)
            #expect(origin.connectionCount == 0)

            let corrected = ClosureMiddleware { request, _, next in
                var request = request
                request.headers["X-Trace"] = value
                do { return try await next(request) } catch let error as HTTPError where error.code == .invalidHeader {
                    request.headers["X-Trace"] = "good"
                    return try await next(request)
                }
            }
            #expect(try await session.with { $0.middleware = [corrected] }.get(origin.url()).text == "good")
        }
    }

    private struct Rejection: Error, Equatable {}

    @Test("The call throws a middleware's error, and nothing is sent")
    func throwing() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own { configuration in
                configuration.middleware = [ClosureMiddleware { _, _, _ in throw Rejection() }]
                configuration.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero))
            }
            await #expect(throws: Rejection()) { try await session.get(origin.url()) }
            #expect(origin.connectionCount == 0)
        }
    }

    // MARK: Responses

    @Test("Middleware can respond without the network")
    func made() async throws {
        let step = ClosureMiddleware { request, _, next in
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

    @Test("A response made by middleware may be a redirect or may be retried")
    func madeStatuses() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("there")
        } run: { origin async throws in
            let target = origin.url("/b")
            let count = Counter()
            let step = ClosureMiddleware { request, _, next in
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

    @Test("Middleware can change a response's status, fields and body")
    func changed() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("abc")
        } run: { origin async throws in
            let step = ClosureMiddleware { request, _, next in
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

    /// Delivers each byte of a body twice.
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
            let step = ClosureMiddleware { request, _, next in
                var response = try await next(request)
                if let body = response.body { response.setBody(Doubled(body: body)) }
                return response
            }
            let session = HTTPSession.own { $0.middleware = [step] }
            let newest = Mutex(TransferProgress?.none)
            let directory = try TemporaryDirectory()
            let file = directory.path + "/file"
            try await session.save(
                HTTPRequest(method: .get, url: origin.url()), to: FilePath(file), overwrites: false
            ) { progress in newest.withLock { $0 = progress } }
            #expect(FileManager.default.contents(atPath: file)?.count == 2 * byteCount)
            #expect(newest.withLock { $0 }?.completedByteCount == UInt64(byteCount))
        }
    }

    @Test(
        "Body bytes read by middleware are not delivered to the caller, also in coded bodies", arguments: [false, true])
    func partlyRead(_ isCoded: Bool) async throws {
        let text = String(repeating: "0123456789", count: 20_000)
        try await TestOrigin.withOrigin { _ in
            isCoded ? .encoded(Deflated.bytes(Array(text.utf8), as: .gzip), coding: "gzip") : .text(text)
        } run: { origin async throws in
            let taken = Mutex<[UInt8]>([])
            let step = ClosureMiddleware { request, _, next in
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

    // MARK: Repeated requests

    @Test(
        "Middleware can send again; the previous response is released and its connection is reused")
    func again() async throws {
        try await TestOrigin.withOrigin { request in
            request.number < 3 ? .text("again", status: 202) : .text("done")
        } run: { origin async throws in
            let step = ClosureMiddleware { request, _, next in
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

    @Test("A released response is rejected, and so is a second concurrent request")
    func misuse() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let released = ClosureMiddleware { request, _, next in
                let first = try await next(request)
                _ = try await next(request)
                return first
            }
            let beside = ClosureMiddleware { request, _, next in
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

    @Test("A one-shot body is not sent twice")
    func sentTwice() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .mirror) { (origin) async throws in
            let step = ClosureMiddleware { request, _, next in
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

    @Test("Middleware sees failures that the retry policy then retries")
    func failures() async throws {
        let count = Counter()
        try await TestOrigin.withOrigin { request in
            count.next() < 3
                ? OriginResponse.text("x").with { $0.fault = OriginFault(.close) } : .text("done")
        } run: { origin async throws in
            let codes = Mutex<[HTTPError.Code]>([])
            let step = ClosureMiddleware { request, _, next in
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

    @Test("A failed request that middleware sends itself does not cause a retry of the call")
    func ownCalls() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/token"
                ? OriginResponse.text("x").with { $0.fault = OriginFault(.close) } : .text("done")
        } run: { origin async throws in
            let token = origin.url("/token")
            let plain = HTTPSession.own()
            let step = ClosureMiddleware { request, _, next in
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

    @Test("Middleware can send requests to the same host in the same session with one connection")
    func sameSession() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/token" ? .text("t0ken") : .text(request.headers["Authorization"] ?? "-")
        } run: { origin async throws in
            let token = origin.url("/token")
            let step = ClosureMiddleware { request, _, next in
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

    @Test("A request that middleware sends to another origin carries no credentials of the first")
    func rerouted() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Authorization"] ?? "-")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .text("home")
            } run: { home async throws in
                let target = try HTTPURL(foreign.url())
                let session = HTTPSession.own { configuration in
                    configuration.middleware = [
                        ClosureMiddleware { request, _, next in
                            try await next(
                                HTTPCall.Request(
                                    HTTPRequest(
                                        method: request.head.method, url: target,
                                        headers: request.head.headerFields)))
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

    @Test("Session and URL credentials are not sent to a rerouted origin, nor in its redirects")
    func reroutedCredentials() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a"
                ? .redirect(to: "/b")
                : .text("\(request.headers["Authorization"] ?? "-") \(request.headers["Cookie"] ?? "-")")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .text("home")
            } run: { home async throws in
                let place = try HTTPRequest(method: .get, url: home.url()).authority ?? ""
                let other = try HTTPRequest(method: .get, url: foreign.url()).authority
                let moving = ClosureMiddleware { request, _, next in
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

    @Test("Middleware whose call has ended sends nothing, and its open responses are closed")
    func late() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let (entered, released, failed) = (OneShot<Void>(), OneShot<Void>(), OneShot<Void>())
            let loop = EventLoop.sharedOrStalled
            let step = ClosureMiddleware { request, _, next in
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
