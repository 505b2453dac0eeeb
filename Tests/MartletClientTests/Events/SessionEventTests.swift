import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization
import Testing

@testable import MartletCore

@Suite("Session events")
struct SessionEventTests {
    /// Returns one or two words for the event, without the values that differ between runs.
    static func word(_ event: SessionEvent) -> String {
        switch event.kind {
        case .started(let method, _): "started \(method.rawValue)"
        case .suspended: "suspended"
        case .resumed: "resumed"
        case .connectionOpened: "opened"
        case .connectionReused: "reused"
        case .requestSent(let attempt): "sent \(attempt)"
        case .interimResponseReceived(let status): "interim \(status)"
        case .redirected(let status, let url): "redirected \(status) \(url.suffix(2))"
        case .challenged(let status): "challenged \(status)"
        case .retrying(let status, let error, _): "retrying \(status ?? 0) \(error?.rawValue ?? "-")"
        case .responseReceived(let status, let count, _): "response \(status) \(count.map(String.init) ?? "?")"
        case .finished: "finished"
        case .failed(let code): "failed \(code?.rawValue ?? "-")"
        case .cancelled: "cancelled"
        case .dropped(let count): "dropped \(count)"
        case .sessionInvalidated: "invalidated"
        }
    }

    /// Returns all events until the session's end.
    static func all(_ events: SessionEvents) async -> [SessionEvent] {
        var all: [SessionEvent] = []
        for await event in events { all.append(event) }
        return all
    }

    @Test("A call emits events from its start to its end")
    func call() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("hello")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let events = session.events
            let exchange = try await session.get(origin.url())
            _ = try await session.get(origin.url())
            await session.finishAndInvalidate()
            let all = await SessionEventTests.all(events)
            #expect(
                all.map(SessionEventTests.word) == [
                    "started GET", "opened", "sent 1", "response 200 5", "finished",
                    "started GET", "reused", "sent 1", "response 200 5", "finished", "invalidated",
                ])
            #expect(Set(all.compactMap(\.call)).count == 2)
            guard case .finished(let metrics) = all[4].kind else { throw SessionEventTests.Unexpected() }
            #expect(metrics == exchange.metrics)
            #expect(all[4].elapsed >= all[0].elapsed)
        }
    }

    struct Unexpected: Error {}

    @Test("An event is encoded as an object with the names of its values, for logs")
    func encoding() throws {
        let connection = ConnectionInformation(remoteAddress: "192.0.2.1:80", localAddress: "192.0.2.2:5000")
        var metrics = HTTPMetrics()
        metrics.total = .milliseconds(20)
        metrics.dns = .microseconds(1500)
        metrics.connection = connection
        let url = try HTTPURL("https://u:p@a.example/?token=hunter2")
        metrics.hops = [HTTPHop(reason: .redirect, method: .get, url: url, status: 302, ended: .milliseconds(5))]
        let address = #"{"localAddress":"192.0.2.2:5000","remoteAddress":"192.0.2.1:80"}"#
        let hop =
            #"{"delay":0,"ended":0.005,"method":"GET","reason":"redirect","status":302,"#
            + #""url":"https://a.example/?token=***"}"#
        let measured =
            #"{"attempts":1,"connection":\#(address),"dns":0.0015,"hops":[\#(hop)],"isConnectionReused":false,"#
            + #""receivedBodyByteCount":0,"sentByteCount":0,"total":0.02,"wait":0}"#
        let rows: [(SessionEvent.Kind, String)] = [
            (
                .started(method: .get, url: "https://a.example/b"),
                #"{"call":7,"elapsed":1.5,"event":"started","method":"GET","url":"https://a.example/b"}"#
            ), (.suspended, #"{"call":7,"elapsed":1.5,"event":"suspended"}"#),
            (.resumed, #"{"call":7,"elapsed":1.5,"event":"resumed"}"#),
            (
                .connectionOpened(connection),
                #"{"call":7,"connection":\#(address),"elapsed":1.5,"event":"connectionOpened"}"#
            ),
            (
                .connectionReused(connection),
                #"{"call":7,"connection":\#(address),"elapsed":1.5,"event":"connectionReused"}"#
            ), (.requestSent(attempt: 2), #"{"attempt":2,"call":7,"elapsed":1.5,"event":"requestSent"}"#),
            (
                .interimResponseReceived(status: 103),
                #"{"call":7,"elapsed":1.5,"event":"interimResponseReceived","status":103}"#
            ),
            (
                .redirected(status: 302, to: "https://b.example/"),
                #"{"call":7,"elapsed":1.5,"event":"redirected","status":302,"to":"https://b.example/"}"#
            ), (.challenged(status: 401), #"{"call":7,"elapsed":1.5,"event":"challenged","status":401}"#),
            (
                .retrying(status: nil, error: .connectFailed, delay: .milliseconds(250)),
                #"{"call":7,"delay":0.25,"elapsed":1.5,"error":"connectFailed","event":"retrying"}"#
            ),
            (
                .responseReceived(status: 200, byteCount: 5, source: .network),
                #"{"byteCount":5,"call":7,"elapsed":1.5,"event":"responseReceived","source":"network","status":200}"#
            ), (.finished(metrics), #"{"call":7,"elapsed":1.5,"event":"finished","metrics":\#(measured)}"#),
            (.failed(.timedOut), #"{"call":7,"elapsed":1.5,"error":"timedOut","event":"failed"}"#),
            (.failed(nil), #"{"call":7,"elapsed":1.5,"event":"failed"}"#),
            (.cancelled, #"{"call":7,"elapsed":1.5,"event":"cancelled"}"#),
        ]
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        func text(_ event: SessionEvent) throws -> String {
            String(decoding: try encoder.encode(event), as: UTF8.self)
        }
        for (kind, expected) in rows {
            #expect(try text(SessionEvent(kind, call: 7, elapsed: .milliseconds(1500))) == expected)
        }
        #expect(try text(SessionEvent(.dropped(3))) == #"{"count":3,"event":"dropped"}"#)
        #expect(try text(SessionEvent(.sessionInvalidated)) == #"{"event":"sessionInvalidated"}"#)
    }

    @Test("Redirects, challenges and retries emit events in order, with consecutive attempt numbers")
    func hops() async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/a": .redirect(to: "/b")
            case "/b" where request.headers["Authorization"] == nil:
                OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            case "/b" where request.number < 4: OriginResponse(503)
            default: .text("in")
            }
        } run: { origin async throws in
            let session = HTTPSession.own { configuration in
                configuration.retry = .transient(backoff: .constant(.zero))
                configuration.authentication.handler = { _ in .basic(user: "user", password: "pass") }
            }
            let events = session.events
            _ = try await session.get(origin.url("/a"))
            await session.finishAndInvalidate()
            #expect(
                await SessionEventTests.all(events).map(SessionEventTests.word) == [
                    "started GET", "opened", "sent 1", "redirected 302 /b", "reused", "sent 2",
                    "challenged 401",
                    "reused", "sent 3", "retrying 503 -", "reused", "sent 4", "response 200 2", "finished",
                    "invalidated",
                ])
        }
    }

    @Test("A retry after a cut body emits the event of the second response, too")
    func cutBody() async throws {
        let cut = ServerScript.respond("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        let whole = ServerScript.keepAlive("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")
        try await TestOrigin.withOrigin(scripts: cut, whole) { origin async throws in
            let session = HTTPSession.own { $0.retry = .transient(backoff: .constant(.zero)) }
            let events = session.events
            _ = try await session.get(origin.url())
            await session.finishAndInvalidate()
            #expect(
                await SessionEventTests.all(events).map(SessionEventTests.word) == [
                    "started GET", "opened", "sent 1", "response 200 10", "retrying 0 truncated",
                    "opened", "sent 2", "response 200 10", "finished", "invalidated",
                ])
        }
    }

    @Test("A failure event has the error's code, and a cancellation has its own event")
    func ends() async throws {
        let scripts = [
            ServerScript(.expectRequestHead, .close),
            ServerScript(.expectRequestHead, .signal("head"), .awaitClose),
        ]
        try await TestOrigin.withOrigin(scripts: scripts[0], scripts[1]) { origin async throws in
            let session = HTTPSession.own()
            let events = session.events
            await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            let task = await session.task(for: try HTTPRequest(.get, origin))
            try await origin.signals.wait(for: "head")
            await task.pause()
            await task.pause()
            await task.resume()
            await task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            await task.pause()
            await session.finishAndInvalidate()
            let all = await SessionEventTests.all(events)
            #expect(
                all.map(SessionEventTests.word) == [
                    "started GET", "opened", "sent 1", "failed emptyResponse",
                    "started GET", "opened", "sent 1", "suspended", "resumed", "cancelled", "invalidated",
                ])
            #expect(all[4...9].allSatisfy { $0.call == task.id })
        }
    }

    @Test("A slow subscriber loses the oldest events and receives their number; others lose none")
    func slow() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let slow = session.events(buffering: 3)
            let patient = session.events
            for _ in 1...4 { _ = try await session.get(origin.url()) }
            await session.finishAndInvalidate()
            #expect(
                await SessionEventTests.all(slow).map(SessionEventTests.word) == [
                    "dropped 18", "response 200 1", "finished", "invalidated",
                ])
            #expect(await SessionEventTests.all(patient).count == 21)
        }
    }

    @Test("A buffer of size one, or of an invalid size, keeps the last event", arguments: [1, 0, -5])
    func smallest(_ count: Int) async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let events = session.events(buffering: count)
            _ = try await session.get(origin.url())
            await session.finishAndInvalidate()
            #expect(
                await SessionEventTests.all(events).map(SessionEventTests.word) == [
                    "dropped 5", "invalidated",
                ])
        }
    }

    @Test("A buffer that is repeatedly filled and emptied keeps the order")
    func wrapping() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let events = session.events(buffering: 7)
            var iterator = events.makeAsyncIterator()
            for round in 1...20 {
                _ = try await session.get(origin.url())
                var words: [String] = []
                for _ in 1...5 {
                    guard let event = await iterator.next() else { break }
                    words.append(SessionEventTests.word(event))
                }
                #expect(
                    words == [
                        "started GET", round == 1 ? "opened" : "reused", "sent 1", "response 200 1",
                        "finished",
                    ])
            }
        }
    }

    @Test("A subscriber that is cancelled while it waits is released, and the others continue")
    func cancelled() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let events = session.events
            let other = session.events
            let waiting = Task { await SessionEventTests.all(events).count }
            _ = try await session.get(origin.url())
            waiting.cancel()
            #expect(await waiting.value <= 5)
            await session.finishAndInvalidate()
            #expect(await SessionEventTests.all(other).count == 6)
        }
    }

    @Test("After all subscribers have left, calls create no events")
    func gone() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            for _ in 1...50 {
                var iterator = session.events.makeAsyncIterator()
                _ = try await session.get(origin.url())
                #expect(await iterator.next() != nil)
            }
            #expect(session.core.events.count == 0)
        }
    }

    @Test("Events of views belong to the session and end with it")
    func views() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let view = session.with { $0.userAgent = nil }
            let events = session.events
            _ = try await view.get(origin.url())
            await view.invalidateAndCancel()
            #expect(
                await SessionEventTests.all(events).map(SessionEventTests.word).suffix(2) == [
                    "finished", "invalidated",
                ])
            #expect(await SessionEventTests.all(session.events).isEmpty)
        }
    }

    @Test("The sequence does not retain the session and ends when it is released")
    func sessionGone() async throws {
        var session: HTTPSession? = HTTPSession.own()
        let events = try #require(session?.events)
        let reading = Task { await SessionEventTests.all(events).count }
        session = nil
        #expect(await reading.value == 0)
    }

    @Test("Subscribers can come and go while calls run, and every event is complete")
    func storm() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 1...4 {
                    group.addTask { for _ in 1...40 { _ = try await session.get(origin.url()) } }
                }
                for seed in 1...4 {
                    group.addTask {
                        for _ in 1...20 {
                            let events = session.events(buffering: seed)
                            let reading = Task { await SessionEventTests.all(events).count }
                            _ = try await session.get(origin.url())
                            reading.cancel()
                            #expect(await reading.value < 1000)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(session.core.events.count == 0)
            #expect(session.runningCallCount == 0)
        }
    }

    private final class Watching: ObservingMiddleware {
        let words = Mutex<[String]>([])

        func observe(_ event: SessionEvent, in context: CallContext) {
            words.withLock { $0.append("\(SessionEventTests.word(event)) #\(context.sentCount)") }
        }
    }

    @Test("Middleware receives the events of calls with their position in the call")
    func middleware() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a" ? .redirect(to: "/b") : .text("x")
        } run: { origin async throws in
            let watching = Watching()
            _ = try await HTTPSession.own { $0.middleware = [watching] }.get(origin.url("/a"))
            #expect(
                watching.words.withLock { $0 } == [
                    "started GET #0", "opened #0", "sent 1 #0", "redirected 302 /b #1", "reused #1",
                    "sent 2 #1",
                    "response 200 1 #2", "finished #2",
                ])
        }
    }
}
