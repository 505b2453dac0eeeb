import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("State and progress of cached and shared calls")
struct CacheProgressTests {
    @Test("Each reader of a shared transfer is in the state receiving and has byte counts", arguments: [true, false])
    func shared(hasCache: Bool) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.pattern(3_000_000).with {
                $0.headers["Cache-Control"] = "max-age=600"
                $0.fault = OriginFault(.stall, afterBodyBytes: 100_000)
            }
        } run: { origin async throws in
            let session = HTTPSession.own {
                if hasCache { $0.cache = .memoryOnly(options: .withoutPressure) } else { $0.sharesTransfers = true }
            }
            let url = origin.url()
            let task = await session.task(for: try HTTPRequest(.get, origin))
            _ = try await task.response
            let others: [Task<Void, any Error>] = [
                Task { _ = try await session.get(url) },
                Task { try await session.stream(url) { _, body in for try await _ in body {} } },
                Task { for try await _ in try await session.open(url).body {} },
            ]
            #expect(await eventually { session.core.flights.memberCount == 4 })
            for call in await session.tasks {
                #expect(await eventually { call.downloadProgress.completedByteCount == 100_000 })
                #expect(call.downloadProgress.totalByteCount == 3_000_000)
                #expect(call.state == .receiving)
            }
            #expect(await task.state == .receiving && origin.requests.count == 1)
            for call in await session.tasks { call.cancel() }
            for call in others { await #expect(throws: CancellationError.self) { try await call.value } }
        }
    }

    @Test("The reader of a stored body is in the state receiving and has byte counts", arguments: [true, false])
    func stored(onDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with { $0.body = .pattern(2_000_000) }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(
                onDisk ? directory : nil, memory: onDisk ? .bytes(0) : .mebibytes(32))
            _ = try await session.get(origin.url())
            let open = try await session.open(origin.url())
            #expect(open.source == .cache)
            var iterator = open.body.makeAsyncIterator()
            let count = try #require(try await iterator.next()).count
            let call = try #require(await session.tasks.first)
            #expect(call.downloadProgress.completedByteCount == UInt64(count) && count < 2_000_000)
            #expect(call.downloadProgress.totalByteCount == 2_000_000 && call.state == .receiving)
            open.cancel()
        }
    }

    @Test("A stale response that replaces an error reports its own length as the total")
    func staleOnError() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1
                ? CacheScene.stale("a long stale text", CacheScene.staleIfError)
                : OriginResponse(503, body: .text("no"))
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            _ = try await session.get(origin.url())
            let task = await session.task(for: try HTTPRequest(.get, origin))
            #expect(try await task.value.source == .staleCache)
            var last: TransferProgress?
            for await progress in task.downloadProgress { last = progress }
            #expect(last?.completedByteCount == 17 && last?.totalByteCount == 17)
        }
    }
}
