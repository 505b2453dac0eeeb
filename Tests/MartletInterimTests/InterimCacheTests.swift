import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Interim responses and the cache", .timeLimit(.minutes(10)))
struct InterimCacheTests {
    private func makeSession(_ origin: TestOrigin) -> HTTPSession {
        .own(origin) { $0.cache = .memoryOnly(options: .withoutPressure) }
    }

    @Test("A request to the network reports them, and a response from the cache has none")
    func stored() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(headers: ["Cache-Control": "max-age=1000"], body: .text("ok")).with {
                $0.interim = [InterimResponse(102)]
            }
        } run: { (origin) async throws in
            let (recorder, session) = (InterimRecorder(), makeSession(origin))
            for _ in 1...2 { _ = try await session.get(origin.url(), options: recorder.options()) }
            #expect(recorder.statuses == [102] && origin.recorder.counts.requests == 1)
        }
    }

    @Test("A validation in the background reports none: its call has returned")
    func background() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(
                headers: ["Cache-Control": "max-age=0, stale-while-revalidate=1000"], body: .text("ok")
            ).with { $0.interim = [InterimResponse(102)] }
        } run: { (origin) async throws in
            let (first, second, session) = (InterimRecorder(), InterimRecorder(), makeSession(origin))
            _ = try await session.get(origin.url(), options: first.options())
            _ = try await session.get(origin.url(), options: second.options())
            try await origin.recorder.waitForRequests(count: 2)
            await session.finishAndInvalidate()
            #expect(first.statuses == [102] && second.statuses.isEmpty)
        }
    }

    static let script = ServerScript(
        .expectRequestHead, .signal("asked"), .await("go"), .sendHint, .await("seen"),
        .send("HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: 2\r\n\r\nok"), .awaitClose)

    @Test(
        "Of calls that share a transfer, the one that started it receives them, until it is cancelled",
        arguments: [false, true])
    func shared(isCancelled: Bool) async throws {
        try await TestOrigin.withOrigin(scripts: InterimCacheTests.script) { origin in
            let (starter, other) = (InterimRecorder(), InterimRecorder())
            let (session, signals) = (makeSession(origin), origin.signals)
            let first = Task {
                try await session.get(origin.url(), options: starter.options { _ in signals.raise("seen") })
            }
            try await signals.wait(for: "asked")
            let second = Task { try await session.get(origin.url(), options: other.options()) }
            #expect(await eventually { session.core.flights.memberCount == 2 })
            if isCancelled {
                first.cancel()
                await #expect(throws: CancellationError.self) { try await first.value }
                #expect(await eventually { session.core.flights.memberCount == 1 })
                signals.raise("seen")
            }
            signals.raise("go")
            #expect(try await second.value.text == "ok")
            if !isCancelled { #expect(try await first.value.text == "ok") }
            #expect(starter.statuses == (isCancelled ? [] : [103]) && other.statuses.isEmpty)
            #expect(origin.recorder.counts.requests == 1)
        }
    }
}

extension FlightRegistry {
    /// The number of requests that take part in all flights.
    fileprivate var memberCount: Int {
        all.reduce(0) { sum, flight in sum + flight.state.withLock { $0.readers.count } }
    }
}
