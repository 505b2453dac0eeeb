import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Shared transfers without a cache")
struct SharedTransferTests {
    private static func text(_ request: OriginRequest) -> OriginResponse { .text(request.path) }

    @Test(
        "Equal requests in flight share one transfer, and a later request has its own",
        arguments: [true, false])
    func shared(isOn: Bool) async throws {
        try await CacheScene.withHeldOrigin(Self.text) { origin, signals async throws in
            let session = HTTPSession.own { $0.sharesTransfers = isOn }
            let url = origin.url("/a")
            let tasks = (0..<10).map { _ in Task { try await session.get(url) } }
            if isOn {
                #expect(await eventually { session.core.flights.memberCount == 10 })
            } else {
                try await origin.waitForRequests(count: 10)
            }
            signals.raise("go")
            for task in tasks { #expect(try await task.value.text == "/a") }
            #expect(origin.requests.count == (isOn ? 1 : 10))
            #expect(try await session.with { $0.timeouts.head = TestTimeouts.long }.get(url).source == .network)
            #expect(origin.requests.count == (isOn ? 2 : 11))
            #expect(await eventually { session.core.flights.memberCount == 0 && session.diagnostics.isIdle })
        }
    }

    @Test("A cancelled request does not affect the others, and cancelling the last ends the transfer")
    func cancelled() async throws {
        try await CacheScene.withHeldOrigin(Self.text) { origin, signals async throws in
            let session = HTTPSession.own { $0.sharesTransfers = true }
            let tasks = (0..<5).map { _ in Task { try await session.get(origin.url("/a")) } }
            #expect(await eventually { session.core.flights.memberCount == 5 })
            for task in tasks.dropLast() {
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            #expect(session.core.flights.memberCount == 1)
            signals.raise("go")
            #expect(try await tasks[4].value.text == "/a")
            #expect(origin.requests.count == 1)
        }
        try await TestOrigin.withOrigin { _ in
            throw OriginFault(.stall)
        } run: { origin async throws in
            let session = HTTPSession.own { $0.sharesTransfers = true }
            let tasks = (0..<5).map { _ in Task { try await session.get(origin.url()) } }
            #expect(await eventually { session.core.flights.memberCount == 5 })
            for task in tasks { task.cancel() }
            #expect(await eventually { origin.openConnectionCount == 0 && session.diagnostics.isIdle })
        }
    }

    @Test("Requests that differ in fields, credentials, method or body do not share a transfer")
    func different() async throws {
        try await CacheScene.withHeldOrigin(Self.text) { origin, signals async throws in
            let session = HTTPSession.own { $0.sharesTransfers = true }
            let url = origin.url("/a")
            let tasks = [
                Task { try await session.get(url) },
                Task { try await session.get(url, headers: [.accept: "text/plain"]) },
                Task { try await session.get(url, headers: [.authorization: "Bearer a"]) },
                Task { try await session.get(url, headers: [.authorization: "Bearer b"]) },
                Task { try await session.get(url, headers: [.cacheControl: "only-if-cached"]) },
                Task { try await session.head(url) },
                Task { try await session.post(url, body: .text("x")) },
                Task { try await session.send(.get, HTTPURL(url), body: .text("x")) },
            ]
            try await origin.waitForRequests(count: tasks.count)
            signals.raise("go")
            for task in tasks { #expect(try await task.value.statusCode == 200) }
        }
    }

    @Test("All requests that share a failing transfer get its error")
    func failing() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(100_000).with { $0.fault = OriginFault(.cut, afterBodyBytes: 50_000) }
        } run: { origin async throws in
            let session = HTTPSession.own { $0.sharesTransfers = true }
            let tasks = (0..<5).map { _ in Task { try await session.get(origin.url()) } }
            for task in tasks {
                let error = await #expect(throws: HTTPError.self) { try await task.value }
                #expect(error?.code == .truncated)
            }
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("A large body is shared by its readers, and a stalled reader does not delay the others")
    func large() async throws {
        let count: UInt64 = 8 << 20
        try await CacheScene.withHeldOrigin { _ in
            .pattern(count)
        } _: { origin, signals async throws in
            let session = HTTPSession.own { $0.sharesTransfers = true }
            let opening = (0..<3).map { _ in Task { try await session.open(origin.url()) } }
            #expect(await eventually { session.core.flights.memberCount == 3 })
            signals.raise("go")
            var open: [OpenResponse] = []
            for task in opening { open.append(try await task.value) }
            let bodies = open.map(\.body)
            async let one = bodies[0].collect()
            async let two = bodies[1].collect()
            #expect(try await one.count == Int(count))
            #expect(try await two.count == Int(count))
            let error = await #expect(throws: HTTPError.self) { for try await _ in bodies[2] {} }
            #expect(error?.code == .cachedBodyCorrupted)
            #expect(origin.requests.count == 1)
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("A request after an unsafe request does not join an earlier transfer")
    func changed() async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            if request.method == .get { try await signals.wait(for: "go") }
            return .text("ok")
        } run: { origin async throws in
            signals.use(origin)
            let session = HTTPSession.own { $0.sharesTransfers = true }
            let first = Task { try await session.get(origin.url("/a")) }
            try await origin.waitForRequests(count: 1)
            _ = try await session.post(origin.url("/a"), body: .text("x"))
            let second = Task { try await session.get(origin.url("/a")) }
            try await origin.waitForRequests(count: 3)
            signals.raise("go")
            #expect(try await first.value.text == "ok")
            #expect(try await second.value.text == "ok")
        }
    }
}
