import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Repeated requests with compressed bodies")
struct RepeatedRequestTests {
    private static let content = lines(40_000)

    private static func stream() -> HTTPBody { .stream { Pieces(content, sizes: [3000]) }.compressed(.gzip) }

    /// Returns a 415 for every compressed body.
    @Sendable private static func rejecting(_ entry: Inbox.Entry) -> OriginResponse? {
        entry.coding == nil ? nil : .status(415, headers: ["Accept-Encoding": "identity"])
    }

    private final class Observer: HTTPMiddleware {
        private let state = Mutex<[String]>([])
        var events: [String] { state.withLock { $0 } }

        func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
            -> HTTPCall.Response
        { try await next(request) }

        func observe(_ event: SessionEvent, in context: CallContext) {
            guard case .retrying(let status, _, _) = event.kind else { return }
            state.withLock { $0.append("\(status ?? 0)") }
        }
    }

    @Test("After a 415 a body that can be sent again is sent uncompressed, and the repetition is a hop and an event")
    func fallback() async throws {
        try await Inbox.run(Self.rejecting) { origin, inbox async throws in
            for body in [HTTPBody.bytes(Self.content).compressed(.gzip), Self.stream()] {
                let observer = Observer()
                let session = HTTPSession.own { $0.middleware = [observer] }
                let exchange = try await session.post(
                    origin.url(), body: body, headers: [.contentEncoding: "gzip"])
                #expect(exchange.statusCode == 200)
                #expect(exchange.metrics.hops.map(\.reason) == [.retry] && exchange.metrics.hops.first?.status == 415)
                #expect(observer.events == ["415"])
            }
            // The fast path of a session without stages.
            let exchange = try await HTTPSession.own().post(origin.url(), body: Self.stream())
            #expect(exchange.statusCode == 200 && exchange.metrics.hops.count == 1)
            #expect(inbox.codings == ["gzip", nil, "gzip", nil, "gzip", nil])
            #expect(inbox.entries.allSatisfy { $0.content == Self.content })
        }
    }

    @Test("A 415 is returned if the body was read once, was sent uncompressed, or is rejected again")
    func returned() async throws {
        try await Inbox.run({ _ in .status(415) }) { origin, inbox async throws in
            let session = HTTPSession.own()
            let once = HTTPBody.once(Pieces(pieces: [Self.content])).compressed(.gzip)
            #expect(try await session.post(origin.url(), body: once).statusCode == 415)
            #expect(inbox.codings == ["gzip"])
            #expect(try await session.post(origin.url(), body: .bytes(noise).compressed(.gzip)).statusCode == 415)
            #expect(try await session.post(origin.url(), body: .text("plain")).statusCode == 415)
            #expect(inbox.codings == ["gzip", nil, nil])
            #expect(try await session.post(origin.url(), body: Self.stream()).statusCode == 415)
            #expect(inbox.codings == ["gzip", nil, nil, "gzip", nil])
        }
    }

    @Test("A body that can be read only once is sent uncompressed if the 415 comes instead of the 100")
    func expectation() async throws {
        let inbox = Inbox()
        try await TestOrigin.withOrigin { request in
            if request.headers["Content-Encoding"] != nil { return .status(415) }
            try await inbox.receive(request)
            return .text("ok")
        } run: { origin async throws in
            let once = HTTPBody.once(Pieces(pieces: [Self.content])).compressed(.gzip)
            let exchange = try await HTTPSession.own().post(
                origin.url(), body: once, headers: [.expect: "100-continue"])
            #expect(exchange.statusCode == 200 && inbox.codings == [nil])
            #expect(inbox.entries.first?.content == Self.content)
        }
    }

    @Test("After a 100 the compressed body is sent")
    func accepted() async throws {
        try await Inbox.run { origin, inbox async throws in
            for body in [HTTPBody.bytes(Self.content).compressed(.gzip), Self.stream()] {
                try await HTTPSession.own().post(origin.url(), body: body, headers: [.expect: "100-continue"])
            }
            #expect(inbox.codings == ["gzip", "gzip"] && inbox.entries.allSatisfy { $0.content == Self.content })
        }
    }

    @Test("Redirects with 307 and 308 send the body compressed again; after a 303 no coding is left")
    func redirects() async throws {
        try await Inbox.run({ $0.path == "/end" ? nil : .redirect(to: "/end", status: Int($0.path.dropFirst()) ?? 500) }
        ) { origin, inbox async throws in
            for (status, last) in [(307, "gzip"), (308, "gzip"), (303, nil)] as [(Int, String?)] {
                let exchange = try await HTTPSession.own().post(
                    origin.url("/\(status)"), body: Self.stream(), headers: [.contentEncoding: "gzip"])
                #expect(exchange.statusCode == 200)
                #expect(inbox.entries.last?.coding == last && inbox.entries.last?.path == "/end")
                #expect(inbox.entries.last?.content == (last == nil ? [] : Self.content))
            }
            #expect(inbox.entries.count == 6)
        }
    }

    @Test("A retry compresses again; after a 415 it stays uncompressed")
    func retries() async throws {
        let failures = Atomic(0)
        try await Inbox.run({ entry in
            if entry.path == "/415", entry.coding != nil { return .status(415) }
            return failures.wrappingAdd(1, ordering: .relaxed).oldValue.isMultiple(of: 2) ? .status(503) : nil
        }) { origin, inbox async throws in
            let session = HTTPSession.own {
                $0.retry = .transient(backoff: .constant(.zero), budget: nil)
            }
            let first = try await session.put(origin.url("/"), body: Self.stream())
            #expect(first.statusCode == 200 && inbox.codings == ["gzip", "gzip"])
            let second = try await session.put(origin.url("/415"), body: Self.stream())
            #expect(second.statusCode == 200 && inbox.codings == ["gzip", "gzip", "gzip", nil, nil])
            #expect(inbox.entries.allSatisfy { $0.content == Self.content })
        }
    }

    @Test("A challenge repeats the compressed body; a 415 after it is repeated with credentials")
    func challenges() async throws {
        try await Inbox.run({ entry in
            guard entry.headers.contains("Authorization") else {
                return OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            }
            return Self.rejecting(entry)
        }) { origin, inbox async throws in
            let session = HTTPSession.own {
                $0.authentication.handler = { _ in .basic(user: "u", password: "p") }
            }
            let exchange = try await session.post(origin.url(), body: Self.stream())
            #expect(exchange.statusCode == 200 && inbox.codings == ["gzip", "gzip", nil])
            #expect(exchange.metrics.hops.map(\.reason) == [.challenge, .retry])
            #expect(inbox.entries.allSatisfy { $0.content == Self.content })
        }
    }
}
