import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Validation before a body is delivered", .timeLimit(.minutes(20)))
struct StreamValidationTests {
    private struct Fault: Error {}

    private func rejection(
        _ origin: TestOrigin, _ session: HTTPSession, _ validator: ResponseValidator
    ) async throws -> HTTPError {
        let wasCalled = Mutex(false)
        let request = try HTTPRequest(method: .get, url: origin.url())
        let error = await #expect(throws: HTTPError.self) {
            try await session.stream(request, validate: validator) { _, _ in wasCalled.withLock { $0 = true }
            }
        }
        #expect(!wasCalled.withLock { $0 })
        return try #require(error)
    }

    @Test("A stream's status is checked first; the error has the body, and the connection is reused")
    func smallBody() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("gone", status: 404)
        } run: { origin in
            let session = HTTPSession.own()
            let error = try await rejection(origin, session, .success)
            #expect(error.code == .unacceptableStatus)
            #expect(error.exchange?.text == "gone")
            #expect(session.poolStatus.leased == 0)
            _ = try await rejection(origin, session, .success)
            #expect(origin.recorder.counts.connections == 1)
        }
    }

    @Test("At most 64 KiB of a rejected large body are stored in the error", arguments: [false, true])
    func largeBody(isChunked: Bool) async throws {
        let response = OriginResponse.pattern(1 << 40).with { response in
            if isChunked { response.framing = .chunked() }
        }
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let session = HTTPSession.own()
            var kept = 0
            for _ in 1...20 where kept < 64 * 1024 {
                let start = ContinuousClock.now
                let error = try await rejection(origin, session, .contentType("text/*"))
                let taken = ContinuousClock.now - start
                #expect(error.code == .unacceptableContentType)
                let body = try #require(error.exchange?.body)
                #expect(body == TestPattern.bytes(from: 0, count: body.count))
                kept = body.count
                // The client waits for the body for at most two seconds; a stalled machine may receive less in that
                // time.
                #expect(kept == 64 * 1024 || kept < 64 * 1024 && taken >= .seconds(2))
            }
            #expect(kept == 64 * 1024)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("The client waits at most two seconds for the body of a rejected response")
    func stalledBody() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\nabc"), .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let start = ContinuousClock.now
            let error = try await rejection(origin, session, .success)
            #expect(ContinuousClock.now - start < TestTimeouts.ending)
            #expect(error.exchange?.text == "abc")
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("The limit applies to bodies that middleware reads, wraps or makes", arguments: 0..<3)
    func stalledBodyOfMiddleware(kind: Int) async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\nabc"), .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own {
                $0.timeouts.idle = nil
                $0.middleware = [
                    ClosureMiddleware { request, _, next in
                        var response = try await next(request)
                        let body = try #require(response.body)
                        switch kind {
                        case 0: for try await _ in body { break }
                        case 1: response.setBody(body)
                        default: response.setBody(AsyncStream<[UInt8]> { _ = $0.yield(Array("abc".utf8)) })
                        }
                        return response
                    }
                ]
            }
            let start = ContinuousClock.now
            let error = try await rejection(origin, session, .success)
            #expect(ContinuousClock.now - start < TestTimeouts.ending)
            #expect(error.code == .unacceptableStatus)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("A stream's announced size and its validation closure are checked before the body")
    func sizeAndClosure() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(100))) { origin in
            let session = HTTPSession.own()
            #expect(try await rejection(origin, session, .body(atMost: 99)).code == .bodyTooLarge)
            #expect(try await rejection(origin, session, .body(atLeast: 101)).code == .unacceptableBody)
            let request = try HTTPRequest(method: .get, url: origin.url())
            let closure = ResponseValidator.custom { exchange in
                #expect(exchange.body.isEmpty)
                #expect(exchange.statusCode == 200)
                throw Fault()
            }
            await #expect(throws: Fault.self) {
                try await session.stream(request, validate: closure) { _, _ in Issue.record("handed out") }
            }
            // An HTTPError of the closure, such as that of another call, is thrown unchanged: no response is added.
            let other = HTTPError(.connectionLost, phase: .connecting, message: "another call")
            let rethrown = await #expect(throws: HTTPError.self) {
                try await session.stream(request, validate: .custom { _ in throw other }) { _, _ in }
            }
            #expect(rethrown?.code == .connectionLost && rethrown?.exchange == nil)
            let count = try await session.stream(request, validate: .standard.and(.body(atMost: 100))) {
                try await $1.collect().count
            }
            #expect(count == 100)
        }
    }

    @Test("The session's validator checks streams and downloads, and a rejected download leaves no file")
    func ofSession() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            .text("<html>")
        } run: { origin in
            let session = HTTPSession.own { $0.validator = .contentType("application/zip") }
            let request = try HTTPRequest(method: .get, url: origin.url())
            let stream = await #expect(throws: HTTPError.self) {
                try await session.stream(request) { _, _ in }
            }
            #expect(stream?.code == .unacceptableContentType)
            let path = directory.path("f")
            let download = await #expect(throws: HTTPError.self) {
                try await session.save(
                    HTTPRequest(method: .get, url: origin.url()), to: path, overwrites: false)
            }
            #expect(download?.code == .unacceptableContentType)
            #expect(download?.exchange?.text == "<html>")
            #expect(try directory.contents().isEmpty)
        }
    }

    // An empty body has no type. A body that was written to a file, or that cannot come, is not empty in this sense.
    @Test("A HEAD response and a body in a file are validated by their Content-Type")
    func elsewhere() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            .text("<html>")
        } run: { origin in
            let validator = ResponseValidator.contentType("application/zip")
            let path = directory.path("delegated")
            let delegated = HTTPSession.own { configuration in
                configuration.validator = validator
                configuration.delegate = RecordingDelegate(received: { _ in .becomeDownload(to: path) })
            }
            let plain = HTTPSession.own()
            let request = try HTTPRequest(method: .get, url: origin.url())
            for call: @Sendable () async throws -> HTTPExchange in [
                { try await delegated.send(request) },
                { try await plain.head(origin.url()).validated(validator) },
                {
                    try await plain.save(request, to: directory.path("own"), overwrites: false).validated(
                        validator)
                },
            ] {
                let error = await #expect(throws: HTTPError.self) { try await call() }
                #expect(error?.code == .unacceptableContentType)
            }
        }
    }

    @Test(
        "Cancelling a download while its rejection's body arrives throws CancellationError")
    func cancelledRefusal() async throws {
        let directory = try TemporaryDirectory()
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 404 No\r\nContent-Length: 10\r\n\r\nabc"), .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let task = await HTTPSession.own().downloadTask(
                for: try HTTPRequest(.get, origin), to: directory.path("f"))
            let response = try await task.response
            #expect(response.status.code == 404)
            await task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(try directory.contents().isEmpty)
        }
    }

    @Test("Streams of a host are checked by the call's validator and by the session's")
    func ofHost() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("<html>")
        } run: { origin in
            let session = HTTPSession.own { $0.validator = .contentType("application/zip") }
            let error = await #expect(throws: HTTPError.self) {
                try await session.host(origin.base).stream("x") { _, _ in Issue.record("handed out") }
            }
            #expect(error?.code == .unacceptableContentType)
            #expect(error?.exchange?.text == "<html>")
            let options = RequestOptions(validator: .anything)
            let text = try await session.host(origin.base).stream("x", options: options) {
                String(decoding: try await $1.collect(), as: UTF8.self)
            }
            #expect(text == "<html>")
        }
    }

    @Test("The error of a rejected response has the status even if the body breaks off", arguments: [false, true])
    func cutBody(isDownload: Bool) async throws {
        let directory = try TemporaryDirectory()
        let response = OriginResponse(body: .text("gone")).with {
            $0.status = 404
            $0.headers = ["Content-Length": "20"]
            $0.closesConnection = true
        }
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let error = try await rejection(origin, isDownload: isDownload, to: directory)
            #expect(error.code == .unacceptableStatus)
            #expect(error.exchange?.statusCode == 404)
            #expect(error.exchange?.text == "gone")
        }
    }

    @Test("The error of a rejected response has the status even if the body never ends", arguments: [false, true])
    func endlessBody(isDownload: Bool) async throws {
        let directory = try TemporaryDirectory()
        let response = OriginResponse.pattern(1 << 40).with { $0.status = 500 }
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let error = try await rejection(origin, isDownload: isDownload, to: directory)
            #expect(error.code == .unacceptableStatus)
            #expect(error.exchange?.statusCode == 500)
            #expect(try #require(error.exchange?.body.count) <= 64 * 1024)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    /// Returns the error of a download, or of a validating stream of a host.
    private func rejection(
        _ origin: TestOrigin, isDownload: Bool, to directory: TemporaryDirectory
    ) async throws -> HTTPError {
        let session = HTTPSession.own()
        let path = directory.path("f")
        let error = await #expect(throws: HTTPError.self) {
            if isDownload {
                try await session.save(
                    HTTPRequest(method: .get, url: origin.url()), to: path, overwrites: false)
            } else {
                let api = try session.host(origin.base).with { $0.validatesStatus = true }
                _ = try await api.stream("x") { _, _ in Issue.record("handed out") }
            }
        }
        #expect(try directory.contents().isEmpty)
        return try #require(error)
    }
}
