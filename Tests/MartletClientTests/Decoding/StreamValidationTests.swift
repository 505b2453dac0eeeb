import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Validation before a body is handed out", .timeLimit(.minutes(20)))
struct StreamValidationTests {
    private struct Fault: Error {}

    private func refusal(
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

    @Test("A stream's status is looked at first; the error has the body, and the connection is kept")
    func smallBody() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("gone", status: 404)
        } run: { origin in
            let session = HTTPSession.own()
            let error = try await refusal(origin, session, .success)
            #expect(error.code == .unacceptableStatus)
            #expect(error.exchange?.text == "gone")
            #expect(session.poolStatus.leased == 0)
            _ = try await refusal(origin, session, .success)
            #expect(origin.recorder.counts.connections == 1)
        }
    }

    @Test("Of a large body that is refused no more than 64 KiB are kept", arguments: [false, true])
    func largeBody(isChunked: Bool) async throws {
        let response = OriginResponse.pattern(1 << 40).with { response in
            if isChunked { response.framing = .chunked() }
        }
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let session = HTTPSession.own()
            var kept = 0
            for _ in 1...20 where kept < 64 * 1024 {
                let start = ContinuousClock.now
                let error = try await refusal(origin, session, .contentType("text/*"))
                let taken = ContinuousClock.now - start
                #expect(error.code == .unacceptableContentType)
                let body = try #require(error.exchange?.body)
                #expect(body == TestPattern.bytes(from: 0, count: body.count))
                kept = body.count
                // It is waited for no longer than two seconds, in which a machine that stalls may get less.
                #expect(kept == 64 * 1024 || kept < 64 * 1024 && taken >= .seconds(2))
            }
            #expect(kept == 64 * 1024)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("A refused body that does not come is not waited for longer than two seconds")
    func stalledBody() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 500 No\r\nContent-Length: 10\r\n\r\nabc"), .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let start = ContinuousClock.now
            let error = try await refusal(origin, session, .success)
            #expect(ContinuousClock.now - start < Patience.ending)
            #expect(error.exchange?.text == "abc")
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("A stream's announced size and a closure's word are asked before the body")
    func sizeAndClosure() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(100))) { origin in
            let session = HTTPSession.own()
            #expect(try await refusal(origin, session, .body(atMost: 99)).code == .bodyTooLarge)
            #expect(try await refusal(origin, session, .body(atLeast: 101)).code == .unacceptableBody)
            let request = try HTTPRequest(method: .get, url: origin.url())
            let closure = ResponseValidator.custom { exchange in
                #expect(exchange.body.isEmpty)
                #expect(exchange.statusCode == 200)
                throw Fault()
            }
            await #expect(throws: Fault.self) {
                try await session.stream(request, validate: closure) { _, _ in Issue.record("handed out") }
            }
            let count = try await session.stream(request, validate: .standard.and(.body(atMost: 100))) {
                try await $1.collect().count
            }
            #expect(count == 100)
        }
    }

    @Test("A session's validator is asked of its streams and downloads, and no file is left")
    func ofSession() async throws {
        let folder = try TemporaryFolder()
        try await TestOrigin.withOrigin { _ in
            .text("<html>")
        } run: { origin in
            let session = HTTPSession.own { $0.validator = .contentType("application/zip") }
            let request = try HTTPRequest(method: .get, url: origin.url())
            let stream = await #expect(throws: HTTPError.self) {
                try await session.stream(request) { _, _ in }
            }
            #expect(stream?.code == .unacceptableContentType)
            let path = folder.path("f")
            let download = await #expect(throws: HTTPError.self) {
                try await session.download(
                    HTTPRequest(method: .get, url: origin.url()), to: path, overwrites: false)
            }
            #expect(download?.code == .unacceptableContentType)
            #expect(download?.exchange?.text == "<html>")
            #expect(try folder.contents().isEmpty)
        }
    }

    // Nothing is of no type; but what went into a file, or never comes, is not nothing.
    @Test("A body that was written elsewhere, or that of a HEAD, is of the type that its answer says")
    func elsewhere() async throws {
        let folder = try TemporaryFolder()
        try await TestOrigin.withOrigin { _ in
            .text("<html>")
        } run: { origin in
            let validator = ResponseValidator.contentType("application/zip")
            let path = folder.path("delegated")
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
                    try await plain.download(request, to: folder.path("own"), overwrites: false).validated(
                        validator)
                },
            ] {
                let error = await #expect(throws: HTTPError.self) { try await call() }
                #expect(error?.code == .unacceptableContentType)
            }
        }
    }

    @Test(
        "A download that is cancelled while the body of its refusal comes was cancelled, and has not failed")
    func cancelledRefusal() async throws {
        let folder = try TemporaryFolder()
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 404 No\r\nContent-Length: 10\r\n\r\nabc"), .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let task = await HTTPSession.own().downloadTask(
                for: try HTTPRequest(.get, origin), to: folder.path("f"))
            let response = try await task.response
            #expect(response.status.code == 404)
            await task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(try folder.contents().isEmpty)
        }
    }

    @Test("A host's streams are asked about by the validator of the call and of the session")
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

    @Test("The status of what is refused is told though its body breaks off", arguments: [false, true])
    func cutBody(isDownload: Bool) async throws {
        let folder = try TemporaryFolder()
        let response = OriginResponse(body: .text("gone")).with {
            $0.status = 404
            $0.fields = ["Content-Length": "20"]
            $0.closesConnection = true
        }
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let error = try await refusal(origin, isDownload: isDownload, to: folder)
            #expect(error.code == .unacceptableStatus)
            #expect(error.exchange?.statusCode == 404)
            #expect(error.exchange?.text == "gone")
        }
    }

    @Test("The status of what is refused is told though its body has no end", arguments: [false, true])
    func endlessBody(isDownload: Bool) async throws {
        let folder = try TemporaryFolder()
        let response = OriginResponse.pattern(1 << 40).with { $0.status = 500 }
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let error = try await refusal(origin, isDownload: isDownload, to: folder)
            #expect(error.code == .unacceptableStatus)
            #expect(error.exchange?.statusCode == 500)
            #expect(try #require(error.exchange?.body.count) <= 64 * 1024)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    /// What a download, or a stream of a host that validates, throws.
    private func refusal(
        _ origin: TestOrigin, isDownload: Bool, to folder: TemporaryFolder
    ) async throws -> HTTPError {
        let session = HTTPSession.own()
        let path = folder.path("f")
        let error = await #expect(throws: HTTPError.self) {
            if isDownload {
                try await session.download(
                    HTTPRequest(method: .get, url: origin.url()), to: path, overwrites: false)
            } else {
                let api = try session.host(origin.base).with { $0.validatesStatus = true }
                _ = try await api.stream("x") { _, _ in Issue.record("handed out") }
            }
        }
        #expect(try folder.contents().isEmpty)
        return try #require(error)
    }
}
