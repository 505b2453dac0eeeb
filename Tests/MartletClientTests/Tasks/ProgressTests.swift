@testable import MartletConditions
@testable import MartletContent
@testable import MartletCore
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

extension ProgressSequence {
    /// Whether the last value has been delivered.
    var isOver: Bool { state.value.isFinished }
}

@Suite("Progress of calls")
struct ProgressTests {
    private static let script = ServerScript(
        .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .await("go"),
        .send("56789"), .awaitClose)

    @Test("The first value arrives immediately, before any byte is transferred")
    func firstValue() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.awaitClose)) { origin in
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            var iterator = task.downloadProgress.makeAsyncIterator()
            let first = await iterator.next()
            #expect(first == TransferProgress())
            #expect(first?.fractionCompleted == nil)
            await task.cancel()
        }
    }

    @Test("Values never decrease, and every subscriber receives the last one, which marks the end")
    func subscribers() async throws {
        try await TestOrigin.withOrigin(scripts: ProgressTests.script) { origin in
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            try await withThrowingTaskGroup(of: [TransferProgress].self) { group in
                for _ in 1...5 {
                    group.addTask {
                        var values: [TransferProgress] = []
                        for await value in task.downloadProgress { values.append(value) }
                        return values
                    }
                }
                for await value in task.downloadProgress where value.completedByteCount == 5 { break }
                origin.signals.raise("go")
                for try await values in group {
                    let counts = values.map(\.completedByteCount)
                    #expect(counts == counts.sorted())
                    #expect(
                        values.last
                            == TransferProgress(completedByteCount: 10, totalByteCount: 10, isFinished: true))
                    #expect(values.filter(\.isFinished).count == 1)
                }
            }
            #expect(try await task.value.text == "0123456789")
        }
    }

    @Test("A late subscriber gets the last value and then the end")
    func lateSubscriber() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("hello"))) { origin in
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            _ = try await task.value
            for _ in 1...2 {
                var values: [TransferProgress] = []
                for await value in task.downloadProgress { values.append(value) }
                #expect(
                    values == [TransferProgress(completedByteCount: 5, totalByteCount: 5, isFinished: true)])
                #expect(values.first?.fractionCompleted == 1)
            }
        }
    }

    @Test("A call that fails or is cancelled ends its progress", arguments: [false, true])
    func ended(isCancelled: Bool) async throws {
        let script =
            isCancelled
            ? ProgressTests.script
            : ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            var last: TransferProgress?
            for await value in task.downloadProgress {
                last = value
                if isCancelled, value.completedByteCount == 5 { await task.cancel() }
            }
            #expect(last == TransferProgress(completedByteCount: 5, totalByteCount: 10, isFinished: true))
            await #expect(throws: (any Error).self) { try await task.value }
        }
    }

    @Test("A cancelled subscriber is released, and the others continue")
    func cancelledSubscriber() async throws {
        try await TestOrigin.withOrigin(scripts: ProgressTests.script) { origin in
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            let other = Task {
                var last: TransferProgress?
                for await value in task.downloadProgress { last = value }
                return last
            }
            let subscriber = Task { for await _ in task.downloadProgress {} }
            for await value in task.downloadProgress where value.completedByteCount == 5 { break }
            subscriber.cancel()
            await subscriber.value
            origin.signals.raise("go")
            #expect(await other.value?.completedByteCount == 10)
            _ = try await task.value
        }
    }

    @Test(
        "Progress closures run on the caller's actor, may use its state, and receive the last value"
    )
    @MainActor func callersActor() async throws {
        // Neither Sendable nor protected by a lock.
        var values: [TransferProgress] = []
        try await TestOrigin.withOrigin(handler: .upload) { origin async throws in
            try await HTTPSession.own().upload(.pattern(1 << 20), to: HTTPRequest(.put, origin)) { value in
                MainActor.assertIsolated()
                values.append(value)
            }
        }
        #expect(values.last?.isFinished == true && values.last?.completedByteCount == 1 << 20)
        values = []
        await #expect(throws: HTTPError.self) {
            let request = try HTTPRequest(method: .put, url: "http://127.0.0.1:1/")
            try await HTTPSession.own().upload(.pattern(10), to: request) { values.append($0) }
        }
        #expect(values.last?.isFinished == true)
    }

    @Test("Metrics are printed in one line without the phases that did not occur")
    func printedMetrics() async throws {
        var metrics = HTTPMetrics()
        #expect(metrics.description == "0.0 ms (wait 0.0), sent 0 bytes, received 0 bytes")
        (metrics.total, metrics.dns, metrics.attempts) = (.microseconds(12_345), .milliseconds(2), 3)
        metrics.wait = .seconds(-1)
        metrics.sentByteCount = .max
        #expect(
            "\(metrics)"
                == "12.3 ms (wait 0.0, dns 2.0), sent 18446744073709551615 bytes, received 0 bytes, 3 attempts"
        )
        try await TestOrigin.withOrigin(handler: .fixed(.text("hello"))) { origin async throws in
            let text = "\(try await HTTPSession.own().get(origin.url()).metrics)"
            #expect(text.contains("received 5 bytes") && text.contains("new connection to 127.0.0.1:"))
            #expect(text.contains("connect ") && text.contains("first byte ") && !text.contains("tls"))
        }
    }

    @Test("The closure of an upload receives the last value")
    func uploadClosure() async throws {
        let values = Mutex<[TransferProgress]>([])
        try await TestOrigin.withOrigin { request in
            for try await _ in request.body {}
            return .text("ok")
        } run: { origin in
            let session = HTTPSession.own()
            try await session.upload(.pattern(4 << 20), to: HTTPRequest(.put, origin)) { value in
                values.withLock { $0.append(value) }
            }
            let seen = values.withLock { $0 }
            #expect(
                seen.last
                    == TransferProgress(
                        completedByteCount: 4 << 20, totalByteCount: 4 << 20, isFinished: true))
            #expect(seen.map(\.completedByteCount) == seen.map(\.completedByteCount).sorted())
        }
    }

    @Test("The closure of a failed download receives the end, and the error is thrown")
    func downloadClosure() async throws {
        let values = Mutex<[TransferProgress]>([])
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let path = FilePath("/dev/shm/martlet-progress-\(origin.port)")
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await HTTPSession.own().save(
                        HTTPRequest(method: .get, url: origin.url()), to: path
                    ) { value in
                        values.withLock { $0.append(value) }
                    }
                })
            #expect(error.code == .truncated)
            #expect(values.withLock { $0.last }?.isFinished == true)
            #expect(values.withLock { $0.last }?.completedByteCount == 5)
        }
    }

    @Test("The closure and the delegate of a cancelled call receive the last value")
    func cancelled() async throws {
        let seen = SeenProgress()
        let delegate = RecordingDelegate()
        let script = ServerScript(.expectRequestHead, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own { $0.delegate = delegate }
            let request = try HTTPRequest(.put, origin)
            let call = Task {
                try await session.upload(.pattern(64 << 20), to: request) { value in
                    seen.values.withLock { $0.append(value) }
                }
            }
            #expect(await eventually { seen.values.withLock { $0.last?.completedByteCount ?? 0 } > 0 })
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(seen.values.withLock { $0.last?.isFinished } == true)
            #expect(seen.values.withLock { $0.filter(\.isFinished).count } == 1)
            #expect(delegate.sent.withLock { $0?.isFinished } == true)
        }
    }
}

/// The values that a closure received.
private final class SeenProgress: Sendable {
    let values = Mutex<[TransferProgress]>([])
}
