import FoundationEssentials
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension OneAtATime {
    @Suite("HTTP tasks")
    struct HTTPTaskTests {
        @Test("A task runs from its creation and delivers head and response to every waiter")
        func value() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.text("hello"))) { origin in
                let session = HTTPSession.own()
                let task = await session.task(for: try HTTPRequest(.get, origin))
                try await origin.waitForRequests(count: 1)
                async let head = task.response
                async let one = task.value
                async let two = task.value
                #expect(try await head.status == .ok)
                #expect(try await one.text == "hello")
                #expect(try await two.text == "hello")
                #expect(try await task.value.text == "hello")
                #expect(await task.state == .finished(.completed))
                #expect(task.kind == .data)
                #expect(task.request.path == "/")
            }
        }

        @Test("The head arrives before the body is complete")
        func headFirst() async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), .await("go"),
                .send("ok"),
                .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
                #expect(try await task.response.status == .ok)
                #expect(await task.state == .receiving)
                origin.signals.raise("go")
                #expect(try await task.value.text == "ok")
            }
        }

        @Test("A failed task throws its error to every waiter")
        func failure() async throws {
            try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .close)) { origin in
                let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
                for _ in 1...2 {
                    let error = try #require(
                        await #expect(throws: HTTPError.self) { try await task.value })
                    #expect(error.code == .emptyResponse)
                }
                await #expect(throws: HTTPError.self) { try await task.response }
                #expect(await task.state == .finished(.failed))
            }
        }

        @Test("A request that cannot be sent fails the task and not the process")
        func impossible() async throws {
            let task = await HTTPSession.own().task(
                for: HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil))
            let error = try #require(await #expect(throws: HTTPError.self) { try await task.value })
            #expect(error.code == .invalidURL)
            #expect(await task.state == .finished(.failed))
        }

        @Test("A cancelled waiter is released, and the call continues")
        func cancelledWaiter() async throws {
            let script = ServerScript(.expectRequestHead, .await("go"), .sendOK, .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
                let waiters = [
                    Task { _ = try await task.value },
                    Task { _ = try await task.response },
                ]
                try await origin.recorder.waitForConnections(count: 1)
                for waiter in waiters {
                    waiter.cancel()
                    await #expect(throws: CancellationError.self) { try await waiter.value }
                }
                #expect(await !task.state.isFinished)
                origin.signals.raise("go")
                #expect(try await task.value.text == "ok")
            }
        }

        @Test("Cancelling a task ends its call permanently")
        func cancel() async throws {
            let script = ServerScript(.expectRequestHead, .signal("head"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let task = await session.task(for: try HTTPRequest(.get, origin))
                try await origin.signals.wait(for: "head")
                await task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                await task.cancel()
                #expect(await task.state == .finished(.cancelled))
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("Cancelling a task that has ended changes nothing")
        func cancelLate() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
                let session = HTTPSession.own()
                let task = await session.task(for: try HTTPRequest(.get, origin))
                _ = try await task.value
                await task.cancel()
                #expect(await task.state == .finished(.completed))
                #expect(try await session.get(origin.url()).metrics.isConnectionReused)
            }
        }

        @Test("A paused task stops its sender and completes after it is resumed")
        func pauseReceiving() async throws {
            let buffered = try KernelBuffers.most()
            let size = UInt64(buffered + 32 << 20)
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n"),
                .await("paused"), .sendPattern(size), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let task = await session.task(
                    for: try HTTPRequest(.get, origin),
                    options: RequestOptions(bodyLimit: .bytes(Int(size))))
                _ = try await task.response
                await task.pause()
                #expect(await task.state == .paused)
                origin.signals.raise("paused")
                #expect(await eventually { origin.recorder.counts.bytesSent > 1 << 16 })
                let sent = await settled { origin.recorder.counts.bytesSent }
                #expect(sent < size)
                #expect(await task.state == .paused)
                await task.resume()
                let body = try await task.value.body
                #expect(body.count == Int(size))
                #expect(TestPattern.firstMismatch(in: body, at: 0) == nil)
                #expect(await task.state == .finished(.completed))
            }
        }

        @Test("A paused upload sends nothing and completes after it is resumed")
        func pauseSending() async throws {
            let size: UInt64 = 64 << 20
            try await TestOrigin.withOrigin { request in
                var count = 0
                for try await chunk in request.body { count += chunk.count }
                return .text("\(count)")
            } run: { origin in
                let session = HTTPSession.own()
                // The body's source has produced only a part before the task is paused.
                let signals = origin.signals
                let body = HTTPBody.stream(length: size) {
                    PatternPieces(byteCount: size) { offset in
                        if offset >= 2 << 20 { try await signals.wait(for: "paused", within: TestTimeouts.long) }
                    }
                }
                let task = await session.task(for: try HTTPRequest(.put, origin), body: body)
                #expect(task.kind == .upload)
                try await origin.recorder.waitForCounts { $0.bytesReceived > 1 << 20 }
                await task.pause()
                signals.raise("paused")
                let received = await settled { origin.recorder.counts.bytesReceived }
                #expect(received < size)
                await task.resume()
                #expect(try await task.value.text == "\(size)")
            }
        }

        @Test("A paused task can be cancelled", arguments: [false, true])
        func cancelPaused(isUpload: Bool) async throws {
            try await TestOrigin.withOrigin { request in
                for try await _ in request.body {}
                return .pattern(1 << 40)
            } run: { origin in
                let session = HTTPSession.own()
                let task = await session.task(
                    for: try HTTPRequest(isUpload ? .put : .get, origin),
                    body: isUpload ? .pattern(1 << 40) : .none,
                    options: RequestOptions(bodyLimit: .gibibytes(1 << 20)))
                if !isUpload { _ = try await task.response }
                try await origin.waitForRequests(count: 1)
                await task.pause()
                _ = await settled {
                    origin.recorder.counts.bytesReceived + origin.recorder.counts.bytesSent
                }
                let start = ContinuousClock.now
                await task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                #expect(ContinuousClock.now - start < TestTimeouts.ending)
                #expect(session.poolStatus.leased == 0)
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
            }
        }

        @Test("Pausing suspends the idle timeout")
        func idleClockStands() async throws {
            try await withEnoughTime(from: .milliseconds(250), run: outlastsPause)
        }

        /// Pauses a task for longer than its idle timeout.
        ///
        /// - Returns: Whether it was paused before the timeout could expire.
        private func outlastsPause(idle: Duration) async throws -> Bool {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"), .await("paused"),
                .pause(idle * 5 / 2), .send("cd"), .signal("sent"), .awaitClose)
            return try await TestOrigin.withOrigin(scripts: script) { origin in
                let start = ContinuousClock.now
                let task = await HTTPSession.own().task(
                    for: try HTTPRequest(.get, origin),
                    options: RequestOptions(timeouts: .patient(idle: idle)))
                _ = try? await task.response
                await task.pause()
                guard ContinuousClock.now - start < idle else {
                    await task.cancel()
                    return false
                }
                origin.signals.raise("paused")
                try await origin.signals.wait(for: "sent")
                #expect(await task.state == .paused)
                await task.resume()
                #expect(try await task.value.text == "abcd")
                return true
            }
        }

        @Test("The idle timeout restarts after a pause")
        func idleClockBeginsAnew() async throws {
            try await withEnoughTime(
                from: .seconds(1), upTo: TestTimeouts.ending / 4, run: restartsTransfer)
        }

        /// Pauses a task for three units at the start of an idle timeout of four units, and then lets it wait for two
        /// units.
        ///
        /// - Returns: Whether the machine kept this schedule.
        private func restartsTransfer(inUnitsOf unit: Duration) async throws -> Bool {
            let idle = unit * 4
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"), .await("paused"),
                .pause(unit * 3), .signal("resume"), .pause(unit * 2), .send("cd"), .awaitClose)
            return try await TestOrigin.withOrigin(scripts: script) { origin in
                let start = ContinuousClock.now
                let task = await HTTPSession.own().task(
                    for: try HTTPRequest(.get, origin),
                    options: RequestOptions(timeouts: .patient(idle: idle)))
                // The task is paused while it waits for the rest of the body, so its idle timeout is running.
                for await progress in task.downloadProgress where progress.completedByteCount == 2 { break }
                await task.pause()
                guard ContinuousClock.now - start < idle else {
                    await task.cancel()
                    return false
                }
                origin.signals.raise("paused")
                try await origin.signals.wait(for: "resume")
                let resumed = ContinuousClock.now
                await task.resume()
                do {
                    let text = try await task.value.text
                    #expect(text == "abcd")
                    return true
                } catch let error as HTTPError {
                    #expect(error.timeout == .idle)
                    // The timeout may be correct: on a slow machine the rest may take as long as the timeout.
                    #expect(ContinuousClock.now - resumed >= idle)
                    return false
                }
            }
        }

        @Test("Pausing does not suspend the total timeout", arguments: [false, true])
        func totalClockGoesOn(isUpload: Bool) async throws {
            try await TestOrigin.withOrigin { request in
                for try await _ in request.body {}
                return .pattern(1 << 40)
            } run: { origin in
                let session = HTTPSession.own()
                var options = RequestOptions(bodyLimit: .gibibytes(1 << 20))
                options.timeouts = .patient(total: .milliseconds(500))
                let task = await session.task(
                    for: try HTTPRequest(isUpload ? .put : .get, origin),
                    body: isUpload ? .pattern(1 << 40) : .none, options: options)
                await task.pause()
                let ended = Task { try await task.value }
                let watchdog = await eventually { task.downloadProgress.isOver }
                #expect(watchdog)
                await task.cancel()
                let error = try #require(await #expect(throws: HTTPError.self) { try await ended.value })
                #expect(error.timeout == .total)
                #expect(session.poolStatus.leased == 0)
            }
        }

        @Test("A download task writes its file, and leaves none when it is cancelled")
        func download() async throws {
            let directory = FilePath(FileManager.default.temporaryDirectory.path)
            let path = directory.appending("martlet-\(UUID().uuidString)")
            try await TestOrigin.withOrigin { request in
                request.path == "/whole" ? .pattern(100_000) : .pattern(1 << 40)
            } run: { origin in
                let session = HTTPSession.own()
                let endless = await session.downloadTask(for: try HTTPRequest(.get, origin), to: path)
                try await origin.recorder.waitForCounts { $0.bytesSent > 1 << 20 }
                await endless.cancel()
                await #expect(throws: CancellationError.self) { try await endless.value }
                #expect(!FileManager.default.fileExists(atPath: path.string))
                let whole = await session.downloadTask(for: try HTTPRequest(.get, origin, "/whole"), to: path)
                #expect(whole.kind == .download)
                #expect(try await whole.value.body.isEmpty)
                let data = try #require(FileManager.default.contents(atPath: path.string))
                #expect([UInt8](data) == TestPattern.bytes(from: 0, count: 100_000))
            }
            try FileManager.default.removeItem(atPath: path.string)
        }
    }
}
