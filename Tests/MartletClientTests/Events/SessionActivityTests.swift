import Martlet
import MartletTesting
import Testing

@Suite("Activity of a session")
struct SessionActivityTests {
    @Test("The number of running calls arrives immediately and at each change, and ends with the session")
    func counts() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            var iterator = session.activity.makeAsyncIterator()
            #expect(await iterator.next() == 0)
            let request = try HTTPRequest(.get, origin)
            try await session.stream(request) { _, _ in
                #expect(await iterator.next() == 1)
                try await session.stream(request) { _, _ in #expect(await iterator.next() == 2) }
                #expect(await iterator.next() == 1)
            }
            await session.finishAndInvalidate()
            #expect(await iterator.next() == 0)
            #expect(await iterator.next() == nil)
        }
    }

    @Test("A waiting observer is resumed by a call, by its cancellation, and by the session's end")
    func waiting() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            var session: HTTPSession? = HTTPSession.own()
            let activity = try #require(session?.activity)
            let cancelled = Task { await activity.reduce(into: 0) { count, _ in count += 1 } }
            let ended = Task { await activity.reduce(into: [Int]()) { $0.append($1) } }
            _ = try await session?.get(origin.url())
            cancelled.cancel()
            #expect(await cancelled.value <= 3)
            session = nil
            #expect(await ended.value.last == 0)
        }
    }

    @Test("Tasks are listed by kind while they run, and not after their end")
    func tasks() async throws {
        let script = ServerScript(.expectRequestHead, .signal("head"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let session = HTTPSession.own()
            let request = try HTTPRequest(.put, origin)
            let data = await session.task(for: try HTTPRequest(.get, origin))
            let upload = await session.task(for: request, body: .text("x"))
            let download = await session.downloadTask(for: request, to: "/nonexistent/file")
            #expect(await session.tasks.map(\.id) == [data.id, upload.id, download.id])
            #expect(await session.tasks(of: .data).map(\.id) == [data.id])
            #expect(await session.tasks(of: .upload).map(\.id) == [upload.id])
            #expect(await session.tasks(of: .download).map(\.id) == [download.id])
            #expect(await session.with { $0.userAgent = nil }.tasks.count == 3)
            await upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            #expect(await session.tasks.map(\.id) == [data.id, download.id])
            await session.invalidateAndCancel()
            for task in [data, download] {
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            #expect(await session.tasks.isEmpty)
        }
    }
}
