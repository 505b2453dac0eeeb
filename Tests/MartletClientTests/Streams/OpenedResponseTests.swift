import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@Suite("Opened responses")
struct OpenedResponseTests {
    /// A way for a program to leave an endless or a short body.
    enum Leaving: CaseIterable {
        case unread, firstPiece, bodyAlone, cancelled, cancelledWhileRead, readerCancelled, listCancelled
        case tooLarge, whole, wholeTwice, file, releasedElsewhere
    }

    /// Serves a body of 2⁴⁰ bytes for `/endless`, and ten bytes for all other paths.
    private static func withOrigin(_ run: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/endless" ? .pattern(1 << 40) : .text("0123456789")
        } run: { origin async throws in
            try await run(origin)
        }
    }

    private static func leave(_ leaving: Leaving, _ session: HTTPSession, _ origin: TestOrigin) async throws {
        let endless = origin.url("/endless")
        switch leaving {
        case .unread: _ = try await session.open(endless)
        case .firstPiece:
            let open = try await session.open(endless)
            for try await piece in open.body {
                #expect(TestPattern.firstMismatch(in: piece, at: 0) == nil)
                break
            }
        case .bodyAlone:
            let body = try await session.open(endless).body
            var iterator = body.makeAsyncIterator()
            for _ in 0..<3 { #expect(try await iterator.next() != nil) }
        case .cancelled:
            let open = try await session.open(endless)
            open.cancel()
            for _ in 0..<2 {
                await #expect(throws: CancellationError.self) { for try await _ in open.body {} }
            }
        case .cancelledWhileRead:
            let open = try await session.open(endless)
            let reader = Task { for try await _ in open.body {} }
            open.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
        case .readerCancelled:
            let open = try await session.open(endless)
            let reader = Task { for try await _ in open.body {} }
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            await #expect(throws: CancellationError.self) { for try await _ in open.body {} }
        case .listCancelled:
            let open = try await session.open(endless)
            for call in await session.tasks { call.cancel() }
            await #expect(throws: CancellationError.self) { for try await _ in open.body {} }
        case .tooLarge:
            let open = try await session.open(endless)
            let error = await #expect(throws: HTTPError.self) {
                try await open.body.collect(upTo: .bytes(1000))
            }
            #expect(error?.code == .bodyTooLarge)
            await #expect(throws: HTTPError.self) { for try await _ in open.body {} }
        case .whole, .wholeTwice:
            let open = try await session.open(origin.url("/ten"))
            #expect(try await open.body.collect() == Array("0123456789".utf8))
            // The call ends together with the body.
            #expect(session.runningCallCount == 0 && session.poolStatus.idle == 1)
            if leaving == .wholeTwice {
                let error = await #expect(throws: HTTPError.self) { try await open.body.collect() }
                #expect(error?.code == .bodyAlreadyRead)
            }
            #expect(open.metrics.receivedBodyByteCount == 10)
        case .file:
            let directory = try TemporaryDirectory()
            let open = try await session.open(origin.url("/ten"))
            try await open.body.write(to: FilePath(directory.path + "/file"))
            #expect(session.runningCallCount == 0)
        case .releasedElsewhere:
            let open = try await session.open(endless)
            await Task.detached { withExtendedLifetime(open) {} }.value
        }
    }

    @Test("After an opened body is left in any way, nothing of its call remains", arguments: Leaving.allCases)
    func left(_ leaving: Leaving) async throws {
        try await Self.withOrigin { origin async throws in
            let session = HTTPSession.own()
            try await Self.leave(leaving, session, origin)
            #expect(await eventually { session.diagnostics.isIdle })
            #expect(await session.tasks.isEmpty)
            #expect(try await session.get(origin.url("/next")).text == "0123456789")
            #expect(await eventually { origin.openConnectionCount == 1 })
            await session.finishAndInvalidate()
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("A thousand released responses leave no call, connection or descriptor")
    func thousand() async throws {
        try await Self.withOrigin { origin async throws in
            let session = HTTPSession.own { $0.pool.connectionsPerHost = 8 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<8 {
                    group.addTask {
                        for round in 0..<125 {
                            let path = (worker + round).isMultiple(of: 3) ? "/endless" : "/ten"
                            let open = try await session.open(origin.url(path))
                            if round.isMultiple(of: 2) {
                                for try await _ in open.body { break }
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(await eventually { session.diagnostics.isIdle })
            #expect(await session.tasks.isEmpty)
            #expect(session.poolStatus.idle <= 8)
            await session.finishAndInvalidate()
            #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
        }
    }

    @Test(
        "An opened body continues after its opener is cancelled and its session released")
    func openerCancelled() async throws {
        try await Self.withOrigin { origin async throws in
            let opener = Task { try await HTTPSession.own().open(origin.url("/ten")) }
            let open = try await opener.value
            opener.cancel()
            #expect(open.status == .ok && open.statusCode == 200 && open.expectedContentLength == 10)
            #expect(open.headers[.contentLength] == "10" && open.source == .network)
            #expect(open.url.absoluteForm == origin.url("/ten"))
            #expect(try await open.body.collect().count == 10)
        }
    }

    @Test("Cancelling the opener ends the wait for a response")
    func cancelledBeforeHead() async throws {
        try await TestOrigin.withOrigin { _ in
            throw OriginFault(.stall)
        } run: { origin async throws in
            let session = HTTPSession.own()
            let opener = Task { try await session.open(origin.url()) }
            try await origin.waitForRequests(count: 1)
            opener.cancel()
            await #expect(throws: CancellationError.self) { try await opener.value }
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("An opened body is not read ahead of its reader")
    func backPressure() async throws {
        try await Self.withOrigin { origin async throws in
            let open = try await HTTPSession.own().open(origin.url("/endless"))
            for try await _ in open.body { break }
            let sent = await settled { origin.recorder.counts.bytesSent }
            #expect(sent < 1 << 30)
            open.cancel()
        }
    }

    /// A server that fails in the middle of a body.
    enum Peer: CaseIterable {
        case cut, reset, stall

        var fault: OriginFault {
            switch self {
            case .cut: OriginFault(.cut, afterBodyBytes: 500)
            case .reset: OriginFault(.reset, afterBodyBytes: 500)
            case .stall: OriginFault(.stall, afterBodyBytes: 500)
            }
        }
    }

    @Test(
        "A failed body throws the same error each time, mapped by the session",
        arguments: Peer.allCases)
    func failing(_ peer: Peer) async throws {
        struct Mapped: Error {}
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(1000).with { $0.fault = peer.fault }
        } run: { origin async throws in
            let plain = HTTPSession.own { $0.timeouts.idle = .milliseconds(100) }
            for session in [plain, plain.with { $0.errors = ErrorMapper { _ in Mapped() } }] {
                let open = try await session.open(origin.url())
                for _ in 0..<2 {
                    if session === plain {
                        let error = await #expect(throws: HTTPError.self) { for try await _ in open.body {} }
                        #expect(error?.phase == .receivingBody)
                        #expect((error?.timeout == .idle) == (peer == .stall))
                    } else {
                        await #expect(throws: Mapped.self) { for try await _ in open.body {} }
                    }
                }
                #expect(session.runningCallCount == 0)
                #expect(await eventually { session.diagnostics.isIdle })
            }
        }
    }

    @Test("A slow server does not end a body that is being read")
    func slow() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
            .drip("0123456789", every: .milliseconds(20)), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let open = try await HTTPSession.own().open(origin.url())
            #expect(try await open.body.collect().count == 10)
        }
    }

    @Test("An opened body that is not read ends with a timeout", arguments: [true, false])
    func held(isTotal: Bool) async throws {
        try await Self.withOrigin { origin async throws in
            let session = HTTPSession.own {
                $0.timeouts = Timeouts(
                    unread: isTotal ? nil : .milliseconds(200), total: isTotal ? .milliseconds(500) : nil)
            }
            let open = try await session.open(origin.url("/endless"))
            #expect(await eventually { session.diagnostics.isIdle })
            let error = await #expect(throws: HTTPError.self) { for try await _ in open.body {} }
            #expect(error?.code == .timedOut)
            #expect(error?.timeout == (isTotal ? .total : .unread))
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("Each read of an opened body restarts the timeout for unread bodies")
    func leisurely() async throws {
        try await Self.withOrigin { origin async throws in
            let session = HTTPSession.own { $0.timeouts.unread = .seconds(60) }
            let open = try await session.open(origin.url("/endless"))
            var iterator = open.body.makeAsyncIterator()
            for _ in 0..<5 { #expect(try await iterator.next() != nil) }
            #expect(session.runningCallCount == 1)
        }
    }

    @Test("One of two tasks that read a body concurrently is rejected, and the other continues")
    func twoReaders() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), .await("go"),
            .send("ok"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let open = try await HTTPSession.own().open(origin.url())
            let rejected = Counter()
            let readers = (0..<2).map { _ in
                Task {
                    do { return try await open.body.collect().count } catch let error as HTTPError {
                        #expect(error.code == .invalidRequest)
                        rejected.add()
                        return 0
                    }
                }
            }
            #expect(await eventually { rejected.count == 1 })
            origin.signals.raise("go")
            var total = 0
            for reader in readers { total += try await reader.value }
            #expect(total == 2)
        }
    }

    @Test("A response without a body ends immediately", arguments: ["HEAD", "204", "304", "0"])
    func withoutBody(kind: String) async throws {
        try await TestOrigin.withOrigin { _ in
            switch kind {
            case "204": OriginResponse(204)
            case "304": OriginResponse(304)
            case "0": .text("")
            default: .text("0123456789")
            }
        } run: { origin async throws in
            let session = HTTPSession.own()
            let method: HTTPRequest.Method = kind == "HEAD" ? .head : .get
            let open = try await session.open(HTTPRequest(method, origin))
            #expect(await eventually { session.diagnostics.isIdle && session.poolStatus.idle == 1 })
            #expect(try await open.body.collect() == [])
        }
    }

    @Test("The trailers of an opened body are available after its end")
    func trailers() async throws {
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"
        try await TestOrigin.withOrigin(scripts: .keepAlive(text)) { origin async throws in
            let open = try await HTTPSession.own().open(origin.url())
            #expect(try await open.body.collect() == Array("ok".utf8))
            #expect(open.trailers?[HTTPField.Name("X-Sum")!] == "7")
        }
    }

    @Test("An opened body is decoded, and its limit counts decoded bytes")
    func decoded() async throws {
        let sample = Deflated.sample(100_000)
        let encoded = Deflated.bytes(sample, as: .gzip)
        try await TestOrigin.withOrigin { _ in
            .encoded(encoded, coding: "gzip")
        } run: { origin async throws in
            let session = HTTPSession.own()
            #expect(try await session.open(origin.url()).body.collect() == sample)
            let limited = try await session.open(
                origin.url(), options: RequestOptions(bodyLimit: .bytes(50_000)))
            let error = await #expect(throws: HTTPError.self) { for try await _ in limited.body {} }
            #expect(error?.code == .bodyTooLarge)
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("Redirects, middleware and validation are complete when a response opens")
    func pipeline() async throws {
        struct Reversing: HTTPMiddleware {
            func handle(
                _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
            ) async throws -> HTTPCall.Response {
                var response = try await next(request)
                if let body = response.body, response.status == .ok {
                    response.setBody(try await body.collect().reversed())
                }
                return response
            }
        }
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/end": .text("abc")
            case "/bad": .text("why", status: 500)
            default: OriginResponse(302, headers: ["Location": "/end"])
            }
        } run: { origin async throws in
            let session = HTTPSession.own { $0.middleware = [Reversing()] }
            let open = try await session.open(origin.url("/start"))
            #expect(open.url.path == "/end")
            #expect(try await open.body.collect() == Array("cba".utf8))
            let error = await #expect(throws: HTTPError.self) {
                try await session.open(origin.url("/bad"), validate: .success)
            }
            #expect(error?.exchange?.text == "why")
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test(
        "Opened bodies can come from the cache, from the network while cached, and from a shared transfer"
    )
    func cached() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(300_000).with { $0.headers.append("Cache-Control", "max-age=600") }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            let first = try await session.open(origin.url())
            let second = try await session.open(origin.url())
            async let one = first.body.collect()
            async let two = second.body.collect()
            #expect(try await one == two)
            #expect(origin.requests.count == 1)
            #expect(await eventually { cache.statistics.stores == 1 })
            let third = try await session.open(origin.url())
            #expect(third.source == .cache)
            #expect(try await third.body.collect().count == 300_000)
            _ = try await session.open(origin.url())
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("Ending a session waits for opened bodies or cancels them", arguments: [true, false])
    func invalidated(cancels: Bool) async throws {
        try await Self.withOrigin { origin async throws in
            let session = HTTPSession.own()
            let open = try await session.open(origin.url(cancels ? "/endless" : "/ten"))
            if cancels {
                await session.invalidateAndCancel()
                await #expect(throws: CancellationError.self) { for try await _ in open.body {} }
            } else {
                let finishing = Task { await session.finishAndInvalidate() }
                #expect(try await open.body.collect().count == 10)
                await finishing.value
            }
            #expect(session.runningCallCount == 0)
            await #expect(throws: HTTPError.self) { try await session.open(origin.url("/ten")) }
        }
    }

    @Test("A host opens responses of its resources, and rejects statuses if configured")
    func host() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/v1/a" ? .text("a") : OriginResponse(404)
        } run: { origin async throws in
            var host = try HTTPHost(HTTPURL(origin.url("/v1/")), session: .own())
            #expect(try await host.open("a").body.collect() == Array("a".utf8))
            #expect(try await host.open("b").status == .notFound)
            host.validatesStatus = true
            await #expect(throws: HTTPError.self) { try await host.open("b") }
        }
    }
}
