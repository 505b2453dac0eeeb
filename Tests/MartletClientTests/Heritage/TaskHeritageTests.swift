import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@Suite("What users of AFNetworking and MKNetworkKit find again: calls and tasks")
struct TaskHeritageTests {
    @Test("M8: a task says what it is doing, and an answer where it came from")
    func states() async throws {
        let script = ServerScript(
            .expectRequestHead, .signal("head"), .await("go"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script, ServerScript(.awaitClose)) { origin async throws in
            let session = HTTPSession.own()
            let task = await session.task(for: try HTTPRequest(.get, origin))
            try await origin.signals.wait(for: "head")
            #expect(await task.state == .running)
            await task.pause()
            #expect(await task.state == .paused)
            await task.resume()
            #expect(await task.state == .running)
            origin.signals.raise("go")
            #expect(try await task.value.source == .network)
            #expect(await task.state == .completed)
            let refused = await session.task(
                for: try HTTPRequest(method: .get, url: "http://127.0.0.1:\(origin.port)/"),
                options: RequestOptions(timeouts: Timeouts(total: .zero)))
            await #expect(throws: HTTPError.self) { try await refused.value }
            #expect(await refused.state == .failed)
            let cancelled = await session.task(for: try HTTPRequest(.post, origin))
            await cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            #expect(await cancelled.state == .cancelled)
        }
    }

    @Test(
        "M10: a multipart upload and a download to a path tell their progress, as a sequence and as a closure"
    )
    func progress() async throws {
        let folder = try TemporaryFolder()
        try folder.write(TestPattern.bytes(from: 0, count: 300_000), to: "source")
        try await TestOrigin.withOrigin { request in
            var count: UInt64 = 0
            for try await chunk in request.body { count += UInt64(chunk.count) }
            return count > 0 ? .text("\(count)") : .pattern(200_000)
        } run: { origin async throws in
            let session = HTTPSession.own()
            let body = HTTPBody.multipart { form in
                form.field("name", "value")
                form.file("file", at: folder.path("source"))
            }
            let told = Mutex<[TransferProgress]>([])
            let answer = try await session.upload(body, to: try HTTPRequest(.post, origin)) { value in
                told.withLock { $0.append(value) }
            }
            let sent = try #require(told.withLock { $0.last })
            #expect(sent.isFinished)
            #expect(answer.text == "\(sent.completedByteCount)")
            #expect(sent.totalByteCount == sent.completedByteCount)
            #expect(sent.completedByteCount > 300_000)

            let task = await session.task(for: try HTTPRequest(.post, origin), body: body)
            var last: TransferProgress?
            for await value in task.uploadProgress { last = value }
            #expect(last == sent)

            told.withLock { $0 = [] }
            try await session.download(
                HTTPRequest(method: .get, url: origin.url()), to: folder.path("closure")
            ) { value in
                told.withLock { $0.append(value) }
            }
            #expect(
                told.withLock { $0.last }
                    == TransferProgress(
                        completedByteCount: 200_000, totalByteCount: 200_000, isFinished: true))
            let download = await session.downloadTask(
                for: try HTTPRequest(.get, origin), to: folder.path("sequence"))
            for await value in download.downloadProgress { last = value }
            #expect(last?.completedByteCount == 200_000)
            _ = try await download.value
            #expect(try folder.bytes(of: "sequence") == folder.bytes(of: "closure"))
        }
    }

    @Test("A7: whoever awaits a call goes on where it was: here on the main actor")
    @MainActor func executor() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
            MainActor.assertIsolated()
            _ = try await HTTPSession.own().get(origin.url())
            MainActor.assertIsolated()
        }
    }

    @Test("A7: a group of calls is a task group, and ends when all have")
    func group() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.path)
        } run: { origin async throws in
            let session = HTTPSession.own()
            let urls = (1...10).map { origin.url("/\($0)") }
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for url in urls { group.addTask { try await session.get(url).text } }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(texts == Set((1...10).map { "/\($0)" }))
            #expect(session.runningCallCount == 0)
        }
    }

    @Test("A18: a complete download that cannot get its name is an error, and its bytes are kept")
    func failedMove() async throws {
        let folder = try TemporaryFolder()
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .await("go"),
            .send("56789"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let task = await HTTPSession.own().downloadTask(
                for: try HTTPRequest(.get, origin), to: folder.path("file"))
            let progress = task.downloadProgress
            #expect(await eventually { progress.current.completedByteCount == 5 })
            // It appears while the download runs, which is not allowed to replace it.
            try folder.write([1], to: "file")
            origin.signals.raise("go")
            let error = try #require(await #expect(throws: HTTPError.self) { try await task.value })
            #expect(error.code == .fileFailed)
            let kept = try #require(error.unpublishedFile?.lastComponent?.string)
            #expect(try folder.bytes(of: kept) == Array("0123456789".utf8))
            #expect(try folder.bytes(of: "file") == [1])
            #expect(try folder.contents().count == 2)
        }
    }

    @Test(
        "A9: timeouts, cookies, priority and service class are options of the session, and most of the call")
    func options() async throws {
        try await TestOrigin.withOrigin { request in
            OriginResponse(
                200, fields: ["Set-Cookie": "a=b"], body: .text(request.fields["Cookie"] ?? "none"))
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.cookies = CookieJar()
                $0.socketOptions.serviceClass = .background
                $0.timeouts.total = Patience.long * 2
            }
            #expect(try await session.get(origin.url()).text == "none")
            #expect(try await session.get(origin.url()).text == "a=b")
            var options = RequestOptions(timeouts: .patient(total: Patience.long), priority: .high)
            options.usesCookies = false
            #expect(try await session.send(try HTTPRequest(.get, origin), options: options).text == "none")
        }
    }
}
