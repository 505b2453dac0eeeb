import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@Suite("Server-sent events of a URL", .timeLimit(.minutes(20)))
struct EventStreamTests {
    /// The requested delays; they end immediately.
    private final class Waits: Sendable {
        private let asked = Mutex<[Duration]>([])
        var all: [Duration] { asked.withLock { $0 } }
        func note(_ duration: Duration) { asked.withLock { $0.append(duration) } }
    }

    private func options(
        _ waits: Waits, _ change: (inout EventStreamOptions) -> Void = { _ in }
    ) -> EventStreamOptions {
        var options = EventStreamOptions()
        options.sleep = { waits.note($0) }
        change(&options)
        return options
    }

    private static func stream(_ text: String) -> OriginResponse {
        OriginResponse(200, headers: ["Content-Type": "text/event-stream"], body: .text(text))
    }

    private func collect(_ events: EventStream) async throws -> [ServerSentEvent] {
        var found: [ServerSentEvent] = []
        for try await event in events { found.append(event) }
        return found
    }

    @Test("The stream reconnects with the last ID after the server's retry time, until a 204")
    func reconnects() async throws {
        let waits = Waits()
        try await TestOrigin.withOrigin { request in
            switch request.headers["Last-Event-ID"] {
            case nil: Self.stream("retry: 700\n\nid: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: lost")
            case "2": Self.stream("data: c\n\nid: end\n\n")
            default: OriginResponse(204)
            }
        } run: { origin in
            let events = HTTPSession.own().events(origin.url("/stream"), options: options(waits))
            let found = try await collect(events)
            #expect(found.map(\.data) == ["a", "b", "c"])
            #expect(found.map(\.id) == ["1", "2", "2"])
            #expect(origin.requests.map { $0.headers["Last-Event-ID"] } == [nil, "2", "end"])
            #expect(origin.requests.first?.headers["Accept"] == "text/event-stream")
            #expect(origin.requests.first?.headers["Cache-Control"] == "no-store")
            #expect(waits.all == [.milliseconds(700), .milliseconds(700)])
        }
    }

    @Test("A stream continues after a given identifier, which received ones replace")
    func givenIdentifier() async throws {
        let waits = Waits()
        try await TestOrigin.withOrigin { request in
            request.headers["Last-Event-ID"] == "9" ? OriginResponse(204) : Self.stream("id: 9\ndata: a\n\n")
        } run: { origin in
            let session = HTTPSession.own()
            let api = try session.host(origin.base)
            let options = options(waits) { $0.lastEventID = "5" }
            for stream in [
                session.events(origin.url(), lastEventID: "7", options: options),
                api.events("feed", lastEventID: "7", options: options),
                session.events(origin.url(), options: options),
                api.events("feed", lastEventID: nil, options: options),
            ] { #expect(try await collect(stream).map(\.data) == ["a"]) }
            #expect(
                origin.requests.map { $0.headers["Last-Event-ID"] } == ["7", "9", "7", "9", "5", "9", "5", "9"])
        }
    }

    @Test("Options are given as a closure")
    func closure() {
        let options = EventStreamOptions { ($0.reconnects, $0.failureLimit) = (false, nil) }
        #expect(!options.reconnects && options.failureLimit == nil && options.lastEventID.isEmpty)
    }

    @Test("A stream that is cut resumes after the last complete event")
    func cut() async throws {
        let waits = Waits()
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        let scripts = [
            ServerScript.respond(head + "Content-Length: 100\r\n\r\nid: 1\ndata: a\n\nid: 2\ndata: b"),
            ServerScript.respond(head + "\r\ndata: b\n\n"),
            ServerScript.respond("HTTP/1.1 204 No Content\r\n\r\n"),
        ]
        try await TestOrigin.withOrigin(scripts: scripts[0], scripts[1], scripts[2]) { origin in
            let events = HTTPSession.own().events(origin.url(), options: options(waits))
            let found = try await collect(events)
            #expect(found.map(\.data) == ["a", "b"])
            #expect(waits.all.count == 2)
            let second = String(decoding: origin.recorder.transcript(ofConnection: 2), as: UTF8.self)
            #expect(second.contains("\r\nLast-Event-ID: 1\r\n"))
        }
    }

    @Test(
        "A status of a busy server is a failure to connect, whose Retry-After is respected",
        arguments: [(429, "7", 7), (502, nil, 1), (503, "99999", 60), (504, "soon", 1)] as [(Int, String?, Int)])
    func busy(_ status: Int, _ retryAfter: String?, _ seconds: Int) async throws {
        let waits = Waits()
        let count = Counter()
        try await TestOrigin.withOrigin { _ in
            switch count.next() {
            case 1: return Self.stream("retry: 1000\n\ndata: a\n\n")
            case 2: return OriginResponse(status).with { if let retryAfter { $0.headers["Retry-After"] = retryAfter } }
            case 3: return Self.stream("data: b\n\n")
            default: return OriginResponse(204)
            }
        } run: { origin in
            let options = options(waits) { $0.reconnectionTimeBounds = .milliseconds(100)...Duration.seconds(60) }
            let found = try await collect(HTTPSession.own().events(origin.url("/stream"), options: options))
            #expect(found.map(\.data) == ["a", "b"])
            #expect(waits.all == [.seconds(1), .seconds(seconds), .seconds(1)])
        }
    }

    @Test("A status other than 200 is an error that contains it")
    func status() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("no", status: 500)
        } run: { origin in
            let error = await #expect(throws: HTTPError.self) {
                _ = try await collect(HTTPSession.own().events(origin.url()))
            }
            #expect(error?.code == .unacceptableStatus)
            #expect(error?.message.contains("500") == true)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Another content type is an error that contains it")
    func contentType() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("data: a\n\n")
        } run: { origin in
            let error = await #expect(throws: HTTPError.self) {
                _ = try await collect(HTTPSession.own().events(origin.url()))
            }
            #expect(error?.code == .unacceptableContentType)
            #expect(error?.message.contains("text/plain") == true)
        }
    }

    @Test("An unreachable server is retried up to the limit, and then its error is thrown")
    func unreachable() async throws {
        let waits = Waits()
        let closed = try ClosedPort.shared.get()
        let error = await #expect(throws: HTTPError.self) {
            let events = HTTPSession.own().events(
                closed.url, options: options(waits) { $0.failureLimit = 3 })
            _ = try await collect(events)
        }
        #expect(error?.code == .connectFailed)
        #expect(waits.all.count == 2)
    }

    @Test("An invalid URL is an error when the first event is requested")
    func noURL() async throws {
        let error = await #expect(throws: HTTPError.self) {
            _ = try await collect(HTTPSession.own().events("nonsense"))
        }
        #expect(error?.code == .invalidURL)
    }

    @Test("An event that is too large ends the stream without a reconnection")
    func tooLarge() async throws {
        try await TestOrigin.withOrigin { _ in
            Self.stream("data: abcdefgh\n\n")
        } run: { origin in
            let waits = Waits()
            let error = await #expect(throws: HTTPError.self) {
                let events = HTTPSession.own().events(
                    origin.url(), options: options(waits) { $0.eventLimit = 8 })
                _ = try await collect(events)
            }
            #expect(error?.code == .limitExceeded)
            #expect(waits.all.isEmpty)
        }
    }

    @Test("Cancelling the task throws CancellationError and closes the connection")
    func cancellation() async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: a\n\n"), .awaitClose,
            .signal("closed"))
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let task = Task {
                var count = 0
                for try await _ in session.events(origin.url()) {
                    count += 1
                    origin.signals.raise("event")
                }
                return count
            }
            try await origin.signals.wait(for: "event")
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await origin.signals.wait(for: "closed")
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("Cancelling during the reconnection delay ends the stream immediately")
    func cancellationWhileWaiting() async throws {
        try await TestOrigin.withOrigin { _ in
            Self.stream("data: a\n\n")
        } run: { origin in
            var options = EventStreamOptions()
            options.reconnectionTime = .seconds(3600)
            let session = HTTPSession.own()
            let settings = options
            let task = Task {
                for try await _ in session.events(origin.url(), options: settings) {
                    origin.signals.raise("event")
                }
            }
            try await origin.signals.wait(for: "event")
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test("Invalidating the session between two connections throws CancellationError, as during one")
    func invalidated() async throws {
        try await TestOrigin.withOrigin { _ in
            Self.stream("data: a\n\n")
        } run: { origin async throws in
            let session = HTTPSession.own()
            var options = EventStreamOptions()
            options.sleep = { _ in await session.invalidateAndCancel() }
            let events = session.events(origin.url(), options: options)
            await #expect(throws: CancellationError.self) { try await collect(events) }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Leaving the loop closes the connection")
    func leaving() async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"),
            .sendEndlessly("data: again\n\n"))
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            var count = 0
            for try await event in session.events(origin.url()) {
                #expect(event.data == "again")
                count += 1
                if count == 1000 { break }
            }
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("A slow consumer stops the server, and nothing is buffered")
    func backPressure() async throws {
        let event = "data: " + String(repeating: "x", count: 8000) + "\n\n"
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"),
            .sendEndlessly(event))
        try await TestOrigin.withOrigin(scripts: script) { origin in
            var events = HTTPSession.own().events(origin.url()).makeAsyncIterator()
            let first = try await events.next()
            #expect(first != nil)
            let sent = await settled { origin.recorder.counts.bytesSent }
            let buffered = try KernelBuffers.most()
            #expect(Int(sent) < buffered + 4 << 20)
        }
    }

    @Test("A POST can receive events, and its body is sent with each connection")
    func post() async throws {
        let waits = Waits()
        try await TestOrigin.withOrigin { request in
            let text = try await request.collectText()
            return request.headers["Last-Event-ID"] == nil
                ? Self.stream("id: 1\ndata: \(text)\n\n") : OriginResponse(text == "hello" ? 204 : 500)
        } run: { origin in
            let request = try HTTPRequest(.post, origin)
            let events = HTTPSession.own().events(
                request, body: .text("hello"), options: options(waits))
            #expect(try await collect(events).map(\.data) == ["hello"])
            #expect(origin.requests.count == 2)
        }
    }
}
