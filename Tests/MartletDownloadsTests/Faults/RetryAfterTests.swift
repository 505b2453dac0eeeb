import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Retry-After of a download")
struct RetryAfterTests {
    /// Returns the delay after a first response that is a rejection with this Retry-After.
    private func delay(
        _ value: String?, status: Int = 503, cap: Duration = .milliseconds(20)
    ) async throws -> Duration {
        var delay: Duration?
        let rejection = OriginResponse(status).with { $0.headers["Retry-After"] = value }
        let conduct = RangeBehavior(Samples.one, acts: [.answer(from: 1, through: 1, rejection)])
        try await RangeScene.with(conduct) { scene in
            let run = try await scene.run(
                RangeScene.options {
                    $0.retry.maximumRetryAfter = cap
                })
            try await scene.expectOrder(after: run, versions: [Samples.one])
            #expect(run.value != nil, "\(run.log)")
            #expect(run.requests.count == 2, "\(run.log)")
            delay = run.retries.first?.delay
        }
        return try #require(delay)
    }

    @Test("A delay in seconds is respected", arguments: [503, 429])
    func seconds(_ status: Int) async throws {
        let delay = try await delay("1", status: status, cap: .seconds(5))
        #expect(delay >= .seconds(1))
        #expect(delay <= .seconds(5))
    }

    @Test(
        "A delay above the maximum is reduced to the maximum",
        arguments: ["1000000000", "99999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
    func capped(_ value: String) async throws {
        let delay = try await delay(value)
        #expect(delay <= .milliseconds(20))
    }

    @Test(
        "An invalid or past time is replaced by the download's own delay",
        arguments: ["soon", "-5", "", "1.5", "Sun, 06 Nov 1994 08:49:37 GMT", "0x10", "Sun, 99 Foo 1994"])
    func garbage(_ value: String) async throws {
        let delay = try await delay(value)
        #expect(delay <= .milliseconds(20))
    }

    @Test("The wait can be cancelled, and leaves no files")
    func cancelled() async throws {
        let rejection = OriginResponse(503, headers: ["Retry-After": "3000"])
        let conduct = RangeBehavior(
            Samples.one, acts: [.cut(request: 1, after: 1_000), .answer(from: 2, rejection)])
        try await RangeScene.with(conduct) { scene in
            let options = RangeScene.options { $0.retry.maximumRetryAfter = .seconds(3_600) }
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: options)
            for await event in download.events {
                if case .retrying(let error, let delay, _) = event, error.message.contains("503") {
                    #expect(delay >= .seconds(3_000))
                    break
                }
            }
            await download.cancel()
            await #expect(throws: CancellationError.self) { try await download.value }
            #expect(try scene.directory.names().isEmpty)
            #expect(scene.directory.openFiles().isEmpty)
        }
    }

    @Test("The wait can be paused, and resuming sends a request immediately")
    func paused() async throws {
        let rejection = OriginResponse(503, headers: ["Retry-After": "3000"])
        let conduct = RangeBehavior(
            Samples.one, acts: [.cut(request: 1, after: 1_000), .answer(from: 2, through: 2, rejection)])
        try await RangeScene.with(conduct) { scene in
            let options = RangeScene.options { $0.retry.maximumRetryAfter = .seconds(3_600) }
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: options)
            for await event in download.events {
                if case .retrying(let error, _, _) = event, error.message.contains("503") { break }
            }
            await download.pause()
            #expect(scene.directory.openFiles().isEmpty)
            try await download.resume()
            let result = try await download.value
            #expect(result.byteCount == Samples.one.byteCount)
            #expect(scene.ranges.requests.last?.start == 1_000)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }
}
