import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension OneAtATime {
    @Suite("Pausing of tasks")
    struct PausingTests {
        @Test("A task paused before its request was sent sends nothing until it is resumed")
        func beforeSending() async throws {
            let script = ServerScript(
                .expectRequestHead, .signal("first"), .await("go"), .sendOK, .expectRequestHead,
                .signal("second"),
                .sendOK, .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin async throws in
                let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
                let first = await session.task(for: try HTTPRequest(.get, origin))
                try await origin.signals.wait(for: "first")
                let second = await session.task(for: try HTTPRequest(.get, origin))
                #expect(await eventually { session.poolStatus.waiting == 1 })
                await second.pause()
                origin.signals.raise("go")
                #expect(try await first.value.text == "ok")
                let received = await settled { origin.recorder.counts.bytesReceived }
                #expect(origin.recorder.counts.bytesReceived == received)
                #expect(!origin.signals.isRaised("second"))
                #expect(await second.state == .paused)
                await second.resume()
                #expect(try await second.value.text == "ok")
            }
        }

        @Test("A head that arrives during a pause is not processed, and its timeout is suspended")
        func beforeHead() async throws {
            try await withEnoughTime(from: .milliseconds(400), run: outlastsPause)
        }

        /// Pauses a task for longer than its head timeout.
        ///
        /// - Returns: Whether it was paused before the timeout could expire.
        private func outlastsPause(head: Duration) async throws -> Bool {
            let script = ServerScript(
                .expectRequestHead, .signal("head"), .await("paused"), .pause(head * 3 / 2), .sendOK,
                .signal("sent"), .awaitClose)
            return try await TestOrigin.withOrigin(scripts: script) { origin async throws in
                let start = ContinuousClock.now
                let task = await HTTPSession.own().task(
                    for: try HTTPRequest(.get, origin),
                    options: RequestOptions(timeouts: .patient(head: head)))
                try await origin.signals.wait(for: "head")
                await task.pause()
                guard ContinuousClock.now - start < head else {
                    await task.cancel()
                    return false
                }
                origin.signals.raise("paused")
                try await origin.signals.wait(for: "sent")
                let progress = task.downloadProgress
                _ = await settled { progress.current.completedByteCount }
                #expect(progress.current.totalByteCount == nil)
                #expect(await task.state == .paused)
                await task.resume()
                #expect(try await task.value.text == "ok")
                return true
            }
        }

        @Test("The progress of either direction pauses, resumes and cancels its task")
        func progressActs() async throws {
            let size: UInt64 = 32 << 20
            try await TestOrigin.withOrigin { request in
                var count = 0
                for try await chunk in request.body { count += chunk.count }
                return .text("\(count)")
            } run: { origin async throws in
                let session = HTTPSession.own()
                // The body's source has produced only a part before the task is paused.
                let signals = origin.signals
                let body = HTTPBody.stream(length: size) {
                    PatternPieces(byteCount: size) { offset in
                        if offset >= 2 << 20 { try await signals.wait(for: "paused", within: TestTimeouts.long) }
                    }
                }
                let task = await session.task(for: try HTTPRequest(.put, origin), body: body)
                let progress = task.uploadProgress
                #expect(await eventually { progress.current.completedByteCount > 0 })
                await progress.pause()
                #expect(await task.state == .paused)
                signals.raise("paused")
                let still = await settled { origin.recorder.counts.bytesReceived }
                #expect(still < size)
                await progress.resume()
                #expect(try await task.value.text == "\(size)")
                #expect(progress.current.fractionCompleted == 1)

                let endless = await session.task(for: try HTTPRequest(.put, origin), body: .pattern(1 << 40))
                await endless.downloadProgress.cancel()
                await #expect(throws: CancellationError.self) { try await endless.value }
                #expect(await endless.state == .finished(.cancelled))
            }
        }

        @Test("Cancelling a session cancels a paused task, and finishing waits for it")
        func invalidation() async throws {
            let signals = SignalBox()
            let size = 8 << 20
            try await TestOrigin.withOrigin { request in
                if request.path != "/held" { return .text("x") }
                return OriginResponse(
                    200,
                    body: .stream { writer in
                        try await writer.write(TestPattern.bytes(from: 0, count: size / 2))
                        try await signals.wait(for: "paused")
                        try await writer.write(TestPattern.bytes(from: UInt64(size / 2), count: size / 2))
                    })
            } run: { origin async throws in
                signals.use(origin)
                let ended = HTTPSession.own()
                let lost = await ended.task(for: try HTTPRequest(.get, origin, "/held"))
                _ = try await lost.response
                await lost.pause()
                await ended.invalidateAndCancel()
                await #expect(throws: CancellationError.self) { try await lost.value }
                #expect(await ended.tasks.isEmpty)

                let session = HTTPSession.own()
                let task = await session.task(for: try HTTPRequest(.get, origin, "/held"))
                _ = try await task.response
                await task.pause()
                signals.raise("paused")
                async let finished: Void = session.finishAndInvalidate()
                await #expect(throws: HTTPError.self) {
                    while true { _ = try await session.get(origin.url()) }
                }
                #expect(await task.state == .paused)
                await task.resume()
                #expect(try await task.value.body.count == 8 << 20)
                await finished
            }
        }

        @Test("Data, upload and download tasks work from memory, files and streams")
        func kinds() async throws {
            let directory = try TemporaryDirectory()
            let bytes = TestPattern.bytes(from: 0, count: 100_000)
            try directory.write(bytes, to: "source")
            try await TestOrigin.withOrigin { request in
                var received: [UInt8] = []
                for try await chunk in request.body { received += chunk }
                return received.isEmpty ? .bytes(bytes) : .bytes(received)
            } run: { origin async throws in
                let session = HTTPSession.own()
                let data = await session.task(for: try HTTPRequest(.get, origin))
                #expect(data.kind == .data)
                #expect(try await data.value.body == bytes)
                let bodies: [HTTPBody] = [
                    .bytes(bytes), .file(directory.path("source")), .pattern(100_000),
                    .once(PatternPieces(byteCount: 100_000)),
                ]
                for body in bodies {
                    let upload = await session.task(for: try HTTPRequest(.put, origin), body: body)
                    #expect(upload.kind == .upload)
                    #expect(try await upload.value.body == bytes)
                    #expect(upload.uploadProgress.current.completedByteCount == 100_000)
                }
                let download = await session.downloadTask(
                    for: try HTTPRequest(.get, origin), to: directory.path("target"))
                #expect(download.kind == .download)
                _ = try await download.value
                #expect(try directory.bytes(of: "target") == bytes)
            }
        }
    }
}
