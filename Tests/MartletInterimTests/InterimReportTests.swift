import Foundation
import Martlet
import MartletTestSupport
import MartletTesting
import Synchronization
import Testing

@Suite("Number, order and effects of reported interim responses", .timeLimit(.minutes(10)))
struct InterimReportTests {
    static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    private func reported(_ text: String, size: Int? = nil) async throws -> (
        InterimRecorder, Result<HTTPExchange, any Error>
    ) {
        let script = ServerScript(
            .expectRequestHead, size.map { .sendPieces(text, size: $0) } ?? .send(text), .awaitClose)
        return try await TestOrigin.withOrigin(scripts: script) { origin in
            let recorder = InterimRecorder()
            do {
                return (
                    recorder, .success(try await HTTPSession.own(origin).get(origin.url(), options: recorder.options()))
                )
            } catch { return (recorder, .failure(error)) }
        }
    }

    @Test("All are reported in order and once, as in the final response", arguments: [nil, 1, 7])
    func order(size: Int?) async throws {
        let text =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n"
            + "HTTP/1.1 199 Other\r\nX: y\r\n\r\n" + InterimReportTests.ok
        let (recorder, result) = try await reported(text, size: size)
        #expect(recorder.statuses == [100, 103, 199])
        #expect(recorder.responses[1].headerFields.map(\.value) == ["</a>", "</b>"])
        #expect(try result.get().interimResponses == recorder.responses)
    }

    @Test("Ten are reported, and the eleventh is an error", arguments: [10, 11])
    func limit(count: Int) async throws {
        let text = String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: count) + InterimReportTests.ok
        let (recorder, result) = try await reported(text)
        #expect(recorder.statuses.count == 10)
        if count == 10 {
            #expect(try result.get().text == "ok")
        } else {
            #expect(throws: HTTPError.self) { try result.get() }
            if case .failure(let error as HTTPError) = result { #expect(error.code == .limitExceeded) }
        }
    }

    @Test("A 101 without a request for it, and a malformed interim response, are errors and not reported")
    func malformed() async throws {
        for text in [
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nBad\r\n\r\n" + InterimReportTests.ok,
        ] {
            let (recorder, result) = try await reported("HTTP/1.1 102 Processing\r\n\r\n" + text)
            #expect(recorder.statuses == [102])
            guard case .failure(let error as HTTPError) = result else {
                Issue.record("no error for \(text)")
                continue
            }
            #expect(error.code == .protocolViolation)
        }
    }

    @Test("An interim response before the end of the stream was reported, and the call fails")
    func alone() async throws {
        let script = ServerScript(.expectRequestHead, .sendHint, .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let recorder = InterimRecorder()
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own(origin).get(origin.url(), options: recorder.options())
            }
            #expect(error?.code == .emptyResponse && recorder.statuses == [103])
        }
    }

    @Test("Redirects and retries: those of each request are reported, in order")
    func followUps() async throws {
        try await TestOrigin.withOrigin { request in
            switch (request.path, request.number) {
            case ("/a", _): OriginResponse.redirect(to: "/b").with { $0.interim = [InterimResponse(102)] }
            case (_, 2): OriginResponse(503).with { $0.interim = [.earlyHints("</1>"), .earlyHints("</2>")] }
            default: OriginResponse.text("ok").with { $0.interim = [InterimResponse(199)] }
            }
        } run: { (origin) async throws in
            let recorder = InterimRecorder()
            var options = recorder.options()
            options.retry = .transient(maximumAttempts: 2, backoff: .constant(.zero), budget: nil)
            let exchange = try await HTTPSession.own(origin).get(origin.url("/a"), options: options)
            #expect(exchange.text == "ok" && exchange.metrics.hops.count == 2)
            #expect(recorder.statuses == [102, 103, 103, 199])
            #expect(exchange.interimResponses.map(\.status.code) == [199])
        }
    }

    @Test("Those of a 417, after which the request is repeated without Expect, are reported once")
    func expectation() async throws {
        let script = ServerScript(
            .expectRequestHead, .sendHint, .send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"), .expectRequestHead,
            .readBody(5), .send("HTTP/1.1 102 Processing\r\n\r\n"), .sendOK, .awaitClose)
        let second = ServerScript(
            .expectRequestHead, .readBody(5), .send("HTTP/1.1 102 Processing\r\n\r\n"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script, second) { origin in
            let recorder = InterimRecorder()
            let session = HTTPSession.own(origin) { $0.continueTimeout = .seconds(300) }
            let exchange = try await session.put(
                origin.url(), body: .text("hello"), headers: [.expect: "100-continue"], options: recorder.options())
            #expect(exchange.text == "ok" && recorder.statuses == [103, 102])
            #expect(exchange.interimResponses.map(\.status.code) == [102])
        }
    }

    @Test("Middleware: those of each request that it sends are reported, and none if it sends none")
    func middleware() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.text("ok").with { $0.interim = [InterimResponse(102)] }
        } run: { (origin) async throws in
            let twice = HTTPSession.own(origin) {
                $0.middleware = [
                    ClosureMiddleware { request, _, next in
                        _ = try await next(request)
                        return try await next(request)
                    }
                ]
            }
            let recorder = InterimRecorder()
            _ = try await twice.get(origin.url(), options: recorder.options())
            #expect(recorder.statuses == [102, 102])
            let none = HTTPSession.own(origin) {
                $0.middleware = [ClosureMiddleware { _, _, _ in HTTPCall.Response(HTTPResponse(status: 204)) }]
            }
            _ = try await none.get(origin.url(), options: recorder.options())
            #expect(recorder.statuses.count == 2)
        }
    }

    // MARK: Cancellation

    @Test("A closure that cancels the caller's task ends the call, although the final response has arrived")
    func cancellation() async throws {
        let script = ServerScript(
            .expectRequestHead, .await("ready"),
            .send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + InterimReportTests.ok),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (recorder, session) = (InterimRecorder(), HTTPSession.own(origin))
            let running = Mutex<Task<HTTPExchange, any Error>?>(nil)
            let options = recorder.options { _ in running.withLock { $0 }?.cancel() }
            let task = Task { try await session.get(origin.url(), options: options) }
            running.withLock { $0 = task }
            origin.signals.raise("ready")
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(recorder.statuses == [103])
            // The connection still carried the response, so it is closed and not reused.
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(session.poolStatus.leased == 0 && session.poolStatus.idle == 0)
        }
    }

    @Test("A closure can cancel a task of the session while the body is being sent")
    func taskCancellation() async throws {
        let script = ServerScript(.expectRequestHead, .await("ready"), .sendHint, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (recorder, session) = (InterimRecorder(), HTTPSession.own(origin))
            let running = Mutex<HTTPTask?>(nil)
            let options = recorder.options { _ in
                let task = running.withLock { $0 }
                Task { await task?.cancel() }
            }
            let body = HTTPBody.stream(length: 10) { AsyncStream<[UInt8]> { $0.yield([1]) } }
            let task = await session.task(for: origin.url(), body: body, options: options)
            running.withLock { $0 = task }
            origin.signals.raise("ready")
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(recorder.statuses == [103])
        }
    }

    @Test("The closure runs outside of all locks: it can read the state of its session and start calls")
    func reentrancy() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.text("ok").with { $0.interim = [InterimResponse(102)] }
        } run: { (origin) async throws in
            let (recorder, session) = (InterimRecorder(), HTTPSession.own(origin) { $0.pool.connectionsPerHost = 1 })
            let nested = Mutex<Task<String, any Error>?>(nil)
            let options = recorder.options { _ in
                #expect(session.poolStatus.leased == 1 && session.runningCallCount == 1)
                nested.withLock { $0 = Task { try await session.get(origin.url()).text } }
            }
            #expect(try await session.get(origin.url(), options: options).text == "ok")
            let task = try #require(nested.withLock { $0 })
            #expect(try await task.value == "ok")
        }
    }

    // MARK: Storing

    @Test("Options with a closure cannot be encoded, and a download manager rejects them")
    func encoding() async throws {
        let options = InterimRecorder().options()
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(options) }
        #expect(throws: Never.self) { try JSONEncoder().encode(RequestOptions()) }
        let path = FileManager.default.temporaryDirectory.appending(path: "martlet-interim-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let session = HTTPSession()
        let manager = try await DownloadManager(session: session, directory: path)
        let error = await #expect(throws: HTTPError.self) {
            try await manager.add("http://127.0.0.1:1/a", to: path + "/a", options: DownloadOptions(request: options))
        }
        #expect(error?.code == .invalidRequest)
        let host = try session.host("http://127.0.0.1:1") { $0.options = options }
        await #expect(throws: HTTPError.self) {
            try await manager.add(
                "a", of: host, to: .file(path + "/b"), options: DownloadOptions(request: options))
        }
        // The host's closure is not for downloads of a manager.
        _ = try await manager.add("a", of: host, to: .file(path + "/c"))
        await manager.close()
    }
}
