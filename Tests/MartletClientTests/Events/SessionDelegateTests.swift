import FoundationEssentials
import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage
import Testing

@Suite("The session delegate")
struct SessionDelegateTests {
    private static func session(
        _ delegate: RecordingDelegate, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        HTTPSession.own { configuration in
            configuration.delegate = delegate
            change(&configuration)
        }
    }

    private static func pieces(_ text: String) -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            continuation.yield(Array(text.utf8))
            continuation.finish()
        }
    }

    @Test("The delegate receives head, body, metrics and end, in this order")
    func order() async throws {
        try await TestOrigin.withOrigin { _ in
            .pattern(300_000)
        } run: { origin async throws in
            let delegate = RecordingDelegate()
            let exchange = try await SessionDelegateTests.session(delegate).get(origin.url())
            #expect(exchange.body.count == 300_000)
            #expect(delegate.calls == ["received 200", "answered 200"])
            #expect(delegate.receivedCount.withLock { $0 } == 300_000)
            let metrics = try #require(delegate.metrics.withLock { $0.first })
            #expect(metrics.receivedBodyByteCount == 300_000)
            #expect(metrics.connect != nil)
        }
    }

    @Test(
        "The delegate receives byte counts of small, streamed, coded and file bodies",
        arguments: ["small", "stream", "coded", "file"])
    func counts(_ way: String) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            way == "coded"
                ? .encoded(Deflated.bytes(Array(repeating: 7, count: 50_000), as: .gzip), coding: "gzip")
                : .pattern(way == "small" ? 100 : 50_000)
        } run: { origin async throws in
            let delegate = RecordingDelegate()
            let session = SessionDelegateTests.session(delegate)
            switch way {
            case "stream":
                let request = try HTTPRequest(method: .get, url: origin.url())
                let count = try await session.stream(request) { _, body in try await body.collect().count }
                #expect(count == 50_000)
            case "file":
                try await session.save(
                    HTTPRequest(method: .get, url: origin.url()), to: directory.path("file"), overwrites: false)
            default: _ = try await session.get(origin.url())
            }
            #expect(delegate.receivedCount.withLock { $0 } == (way == "small" ? 100 : 50_000))
        }
    }

    /// A delegate that collects bytes and decides whether a response is stored.
    private final class Receiver: SessionDelegate {
        let bytes = Mutex<[UInt8]>([])
        let asked = Mutex<[String]>([])
        let stores: Bool
        let receivesBodyBytes: Bool

        init(stores: Bool = true, receivesBodyBytes: Bool = false) {
            (self.stores, self.receivesBodyBytes) = (stores, receivesBodyBytes)
        }

        func bodyBytesReceived(_ bytes: [UInt8], in context: CallContext) async {
            self.bytes.withLock { $0 += bytes }
        }

        func mayStore(_ response: HTTPResponse, to request: HTTPRequest) async -> Bool {
            asked.withLock { $0.append("\(response.status.code) \(request.path ?? "")") }
            return stores
        }
    }

    @Test(
        "The delegate receives the bytes of every body if it requests them, and none otherwise",
        arguments: ["small", "large", "stream", "coded", "file"], [true, false])
    func bytes(_ way: String, isAsking: Bool) async throws {
        let directory = try TemporaryDirectory()
        let count = way == "small" ? 100 : 50_000
        try await TestOrigin.withOrigin { _ in
            way == "coded"
                ? .encoded(
                    Deflated.bytes(TestPattern.bytes(from: 0, count: count), as: .gzip), coding: "gzip")
                : .pattern(UInt64(count))
        } run: { origin async throws in
            let delegate = Receiver(receivesBodyBytes: isAsking)
            let session = HTTPSession.own { $0.delegate = delegate }
            let request = try HTTPRequest(method: .get, url: origin.url())
            switch way {
            case "stream": _ = try await session.stream(request) { _, body in try await body.collect() }
            case "file": try await session.download(request, to: directory.path("file"))
            default: _ = try await session.get(origin.url())
            }
            let received = delegate.bytes.withLock { $0 }
            #expect(received == (isAsking ? TestPattern.bytes(from: 0, count: count) : []))
        }
    }

    @Test(
        "The delegate decides once whether a shared transfer's response is stored",
        arguments: [true, false])
    func storing(_ stores: Bool) async throws {
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("text")
        } _: { origin, signals in
            let delegate = Receiver(stores: stores)
            let (session, cache) = try CacheScene.session { $0.delegate = delegate }
            async let first = session.get(origin.url("/a"))
            async let second = session.get(origin.url("/a"))
            signals.raise("go")
            let texts = try await [first.text, second.text]
            #expect(texts == ["text", "text"])
            let third = try await session.get(origin.url("/a"))
            #expect(third.source == (stores ? .cache : .network))
            #expect(delegate.asked.withLock { $0.allSatisfy { $0 == "200 /a" } && !$0.isEmpty })
            if stores { #expect(delegate.asked.withLock { $0.count } == 1) }
            #expect((cache.statistics.stores > 0) == stores)
        }
    }

    @Test("The delegate is not called for a response that must not be stored")
    func notStorable() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("text", "no-store")
        } run: { origin async throws in
            let delegate = Receiver()
            let (session, _) = try CacheScene.session { $0.delegate = delegate }
            #expect(try await session.get(origin.url()).text == "text")
            #expect(delegate.asked.withLock { $0.isEmpty })
        }
    }

    @Test("A call that is cancelled while the delegate decides about storing ends immediately")
    func cancelledWhileStoring() async throws {
        final class Blocking: SessionDelegate {
            let asked = CurrentValue(false)

            func mayStore(_ response: HTTPResponse, to request: HTTPRequest) async -> Bool {
                asked.update { true }
                try? await Task.sleep(for: .seconds(3600))
                return true
            }
        }
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("text")
        } run: { origin async throws in
            let delegate = Blocking()
            let (session, _) = try CacheScene.session { $0.delegate = delegate }
            let call = Task { try await session.get(origin.url()) }
            await delegate.asked.becomesTrue()
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            await session.invalidateAndCancel()
        }
    }

    @Test("The delegate receives upload progress, always including the last value, before the call ends")
    func sent() async throws {
        try await TestOrigin.withOrigin(handler: .upload) { origin async throws in
            let delegate = RecordingDelegate()
            let request = try HTTPRequest(method: .put, url: origin.url())
            let bytes = [UInt8](repeating: 1, count: 700_000)
            _ = try await SessionDelegateTests.session(delegate).send(request, body: .bytes(bytes))
            let progress = try #require(delegate.sent.withLock { $0 })
            #expect(progress.isFinished)
            #expect(progress.completedByteCount == 700_000)
            #expect(progress.totalByteCount == 700_000)
        }
    }

    @Test("The delegate replies to challenges")
    func challenge() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["Authorization"] == "Basic dXNlcjpwYXNz"
                ? .text("in") : OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
        } run: { origin async throws in
            let delegate = RecordingDelegate(challenged: { _ in
                .credentials(.basic(user: "user", password: "pass"))
            })
            #expect(try await SessionDelegateTests.session(delegate).get(origin.url()).text == "in")
            #expect(delegate.calls == ["challenge 0", "received 200", "answered 200"])
        }
    }

    @Test("A challenge that the delegate does not decide goes to the handler, unless it declines")
    func challengeHandedOn() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["Authorization"] == nil
                ? OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""]) : .text("in")
        } run: { origin async throws in
            for (answer, status) in [
                (ChallengeDisposition.performDefaultHandling, 200), (.returnResponse, 401),
            ] {
                let session = SessionDelegateTests.session(RecordingDelegate(challenged: { _ in answer })) {
                    $0.authentication.handler = { _ in .basic(user: "user", password: "pass") }
                }
                #expect(try await session.get(origin.url()).statusCode == status)
            }
        }
    }

    private struct Rejection: Error, Equatable {}

    @Test("The call throws the delegate's error, and the connection is closed")
    func throwing() async throws {
        try await TestOrigin.withOrigin { _ in
            .pattern(1 << 30)
        } run: { origin async throws in
            let delegate = RecordingDelegate(received: { _ in throw Rejection() })
            let session = SessionDelegateTests.session(delegate)
            await #expect(throws: Rejection()) { try await session.get(origin.url()) }
            #expect(delegate.calls == ["received 200", "failed "])
            #expect(session.poolStatus.leased == 0)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("The delegate receives the error of the call, with its request, also if middleware threw it without one")
    func errorNamesRequest() async throws {
        let body = HTTPBody.stream { AsyncStream<[UInt8]>(unfolding: { [1, 2, 3] }) }
        let signing = ClosureMiddleware { request, _, next in
            _ = try await request.body.collect(upTo: .bytes(2))
            return try await next(request)
        }
        let delegate = RecordingDelegate()
        let session = SessionDelegateTests.session(delegate) { $0.middleware = [signing] }
        let thrown = await #expect(throws: HTTPError.self) { try await session.post("http://a.example/x", body: body) }
        let error = try #require(delegate.failure.withLock { $0 } as? HTTPError)
        #expect(error.description == thrown?.description && error.url?.path == "/x" && error.method == .post)
        #expect(error.callNumber == thrown?.callNumber && error.code == .bodyTooLarge)
    }

    @Test("The delegate can follow a redirect, change it, or return it as the response")
    func redirect() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b") : .text(request.path)
        } run: { origin async throws in
            let elsewhere = try HTTPURL(origin.url("/c"))
            let cases: [(RecordingDelegate.Redirected, Int, String)] = [
                ({ $0 }, 200, "/b"), ({ _ in HTTPRequest(method: .get, url: elsewhere) }, 200, "/c"),
                ({ HTTPRequest(method: .get, url: $0.httpURL ?? elsewhere) }, 200, "/b"), ({ _ in nil }, 302, ""),
            ]
            for (redirected, status, text) in cases {
                let delegate = RecordingDelegate(redirected: redirected)
                let exchange = try await SessionDelegateTests.session(delegate).get(origin.url("/a"))
                #expect(exchange.statusCode == status)
                #expect(exchange.text == text)
                #expect(delegate.calls.first == "redirect 302 /a to /b")
                #expect(exchange.metrics.hops.count == (status == 302 ? 0 : 1))
            }
        }
    }

    @Test("A redirect that the delegate sends to another origin carries no credentials")
    func redirectAbroad() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Authorization"] ?? "-")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .redirect(to: "/b")
            } run: { home async throws in
                let abroad = try HTTPURL(foreign.url())
                let delegate = RecordingDelegate(redirected: { proposed in
                    HTTPRequest(method: .get, url: abroad, headers: proposed.headerFields)
                })
                var request = try HTTPRequest(method: .get, url: home.url("/a"))
                request.headerFields[.authorization] = "Bearer mine"
                #expect(try await SessionDelegateTests.session(delegate).send(request).text == "-")
            }
        }
    }

    @Test(
        "The delegate supplies a new body for a redirect, a challenge and a retry of a one-shot body",
        arguments: [307, 401, 503])
    func newBody(_ status: Int) async throws {
        try await TestOrigin.withOrigin { request in
            let body = try await request.collectBody()
            if request.number > 1 { return .text(String(decoding: body, as: UTF8.self)) }
            return OriginResponse(
                status, headers: ["Location": "/b", "WWW-Authenticate": "Basic realm=\"x\""])
        } run: { origin async throws in
            for isGiven in [true, false] {
                let delegate = RecordingDelegate(
                    challenged: { _ in .credentials(.basic(user: "user", password: "pass")) },
                    body: { isGiven ? .once(SessionDelegateTests.pieces("again"), length: 5) : nil })
                let session = SessionDelegateTests.session(delegate) {
                    $0.retry = .transient(backoff: .constant(.zero))
                }
                let request = try HTTPRequest(method: .put, url: origin.url("/a"))
                let exchange = try await session.send(
                    request, body: .once(SessionDelegateTests.pieces("first"), length: 5))
                #expect(delegate.calls.contains("new body"))
                if isGiven {
                    #expect(exchange.text == "again")
                    break
                }
            }
        }
    }

    @Test("Without a new body the call returns the current response", arguments: [307, 401, 503])
    func noNewBody(_ status: Int) async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectBody()
            return OriginResponse(
                status, headers: ["Location": "/b", "WWW-Authenticate": "Basic realm=\"x\""])
        } run: { origin async throws in
            let delegate = RecordingDelegate(challenged: { _ in
                .credentials(.basic(user: "user", password: "pass"))
            })
            let session = SessionDelegateTests.session(delegate) {
                $0.retry = .transient(backoff: .constant(.zero))
            }
            let request = try HTTPRequest(method: .put, url: origin.url("/a"))
            let exchange = try await session.send(
                request, body: .once(SessionDelegateTests.pieces("first"), length: 5))
            #expect(exchange.statusCode == status)
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "A new body is requested only for a retry that the budget and the total timeout allow",
        arguments: [true, false])
    func newBodyOfPreventedRetry(isInTime: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            _ = try await request.collectBody()
            return OriginResponse(503)
        } run: { origin async throws in
            let delegate = RecordingDelegate(body: { .once(SessionDelegateTests.pieces("again"), length: 5) })
            let session = SessionDelegateTests.session(delegate) {
                $0.retry = .transient(
                    maximumAttempts: 20, backoff: .constant(isInTime ? .zero : .seconds(3600)), budget: 0)
                $0.timeouts.total = TestTimeouts.long
            }
            let exchange = try await session.send(
                HTTPRequest(method: .put, url: origin.url("/a")),
                body: .once(SessionDelegateTests.pieces("first"), length: 5))
            #expect(exchange.statusCode == 503)
            // A new session has a budget of ten retries.
            #expect(delegate.calls.count { $0 == "new body" } == (isInTime ? 10 : 0))
            #expect(origin.requests.count == (isInTime ? 11 : 1))
        }
    }

    @Test("The delegate can cancel a call when the head arrives")
    func cancel() async throws {
        try await TestOrigin.withOrigin { _ in
            .pattern(1 << 30)
        } run: { origin async throws in
            let delegate = RecordingDelegate(received: { _ in .cancel })
            let session = SessionDelegateTests.session(delegate) {
                // The call is not retried, whatever the policy.
                $0.retry = .transient(backoff: .constant(.zero))
                $0.retry.includesAllErrors = true
            }
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(error?.code == .cancelledByDelegate && error?.method == .get && error?.status == 200)
            #expect(delegate.calls == ["received 200", "failed cancelledByDelegate"])
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test(
        "The delegate can turn any body into a download: plain or coded, collected or streamed",
        arguments: [false, true], [false, true])
    func becomeDownload(isCoded: Bool, isStreamed: Bool) async throws {
        let directory = try TemporaryDirectory()
        let bytes = TestPattern.bytes(from: 0, count: 2_000_000)
        try await TestOrigin.withOrigin { _ in
            isCoded ? .encoded(Deflated.bytes(bytes, as: .gzip), coding: "gzip") : .bytes(bytes)
        } run: { origin async throws in
            let delegate = RecordingDelegate(received: { _ in .becomeDownload(to: directory.path("body")) })
            let session = SessionDelegateTests.session(delegate) { $0.bufferedBodyLimit = .kibibytes(64) }
            let request = try HTTPRequest(method: .get, url: origin.url())
            if isStreamed {
                let rest = try await session.stream(request) { _, body in try await body.collect() }
                #expect(rest.isEmpty)
            } else {
                let exchange = try await session.send(request)
                #expect(exchange.statusCode == 200)
                #expect(exchange.body.isEmpty)
            }
            let data = try #require(FileManager.default.contents(atPath: directory.path("body").string))
            #expect([UInt8](data) == bytes)
            #expect(delegate.calls == ["received 200", "downloaded body", "answered 200"])
            #expect(delegate.receivedCount.withLock { $0 } == bytes.count)
            // The body was read to its end, so the connection is reused.
            #expect(session.poolStatus.idle == 1)
        }
    }

    @Test("A body that becomes a download replaces an existing file only on request")
    func overwriting() async throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "body")
        try await TestOrigin.withOrigin { _ in
            .text("new")
        } run: { origin async throws in
            for overwrites in [false, true] {
                let delegate = RecordingDelegate(
                    received: { _ in .becomeDownload(to: directory.path("body"), overwrites: overwrites) })
                let session = SessionDelegateTests.session(delegate)
                if overwrites {
                    _ = try await session.get(origin.url())
                } else {
                    let error = try #require(
                        await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
                    #expect(error.code == .fileExists)
                }
                let data = try #require(FileManager.default.contents(atPath: directory.path("body").string))
                #expect([UInt8](data) == (overwrites ? Array("new".utf8) : [1]))
            }
            #expect(try directory.contents() == ["body"])
        }
    }

    @Test("A partly read body continues in a file without losing a byte")
    func amidBody() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            .pattern(1_000_000)
        } run: { origin async throws in
            let request = try HTTPRequest(method: .get, url: origin.url())
            try await HTTPSession.own().stream(request) { _, body in
                var iterator = body.makeAsyncIterator()
                let first = try #require(try await iterator.next())
                try await body.write(to: directory.path("body"), startingWith: first)
            }
            let data = try #require(FileManager.default.contents(atPath: directory.path("body").string))
            #expect([UInt8](data) == TestPattern.bytes(from: 0, count: 1_000_000))
        }
    }

    @Test("A body that was read to its end can still be written to a file")
    func afterBody() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            OriginResponse(200)
        } run: { origin async throws in
            let request = try HTTPRequest(method: .get, url: origin.url())
            try await HTTPSession.own().stream(request) { _, body in
                try await body.write(to: directory.path("body"), startingWith: Array("held".utf8))
            }
            let data = try #require(FileManager.default.contents(atPath: directory.path("body").string))
            #expect([UInt8](data) == Array("held".utf8))
        }
    }

    @Test("The delegate chooses a download's destination and is notified when the file exists")
    func destination() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            .text("content")
        } run: { origin async throws in
            let delegate = RecordingDelegate(
                received: { _ in .becomeDownload(to: directory.path("ignored")) }, place: directory.path("chosen"))
            let session = SessionDelegateTests.session(delegate)
            try await session.save(
                HTTPRequest(method: .get, url: origin.url()), to: directory.path("said"), overwrites: false)
            #expect(try directory.contents() == ["chosen"])
            #expect(delegate.calls == ["received 200", "destination", "downloaded chosen", "answered 200"])
        }
    }

    @Test("The delegate receives the failure and no other event of that call")
    func failure() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .close)) {
            origin async throws in
            let delegate = RecordingDelegate()
            let session = SessionDelegateTests.session(delegate)
            await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(delegate.calls == ["failed emptyResponse"])
        }
    }

    @Test("The delegate receives the session's end once, after all running calls")
    func invalidated() async throws {
        let script = ServerScript(.expectRequestHead, .signal("head"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let delegate = RecordingDelegate()
            let session = SessionDelegateTests.session(delegate)
            let task = await session.task(for: try HTTPRequest(.get, origin))
            try await origin.signals.wait(for: "head")
            await session.invalidateAndCancel()
            await session.finishAndInvalidate()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(delegate.calls == ["cancelled", "invalidated"])
        }
    }

    @Test("Cancelling while the delegate decides ends the call")
    func cancelledWhileAsked() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("late")
        } run: { origin async throws in
            let signals = origin.signals
            let delegate = RecordingDelegate(received: { _ in
                signals.raise("asked")
                try await signals.wait(for: "answer")
                return .allow
            })
            let task = await SessionDelegateTests.session(delegate).task(for: try HTTPRequest(.get, origin))
            try await signals.wait(for: "asked")
            await task.cancel()
            signals.raise("answer")
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(delegate.calls == ["received 200", "cancelled"])
        }
    }
}
