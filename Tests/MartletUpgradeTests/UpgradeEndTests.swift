import Martlet
import MartletTestSupport
import MartletTesting
import Testing

/// After each of these ends, no call runs, no connection is open, and the server has seen the end.
@Suite("Upgrade: cancellation and ends on this side", .timeLimit(.minutes(10)))
struct UpgradeEndTests {
    /// Waits until the client and the server have released everything.
    private func expectNothingLeft(_ session: HTTPSession, _ origin: TestOrigin) async throws {
        #expect(await eventually { session.isEmpty })
        try await origin.recorder.waitForOpenConnections(atMost: 0)
    }

    @Test("A call that is cancelled while it waits for a connection", arguments: [false, true])
    func whileQueued(isScoped: Bool) async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin) { $0.pool.connectionsPerHost = 1 }
            let holder = try await session.upgraded(origin.url())
            let waiting = Task {
                if isScoped {
                    try await session.upgrade(origin.url(), to: "echo") { _ in _ = Issue.record("upgraded") }
                } else {
                    _ = try await session.upgraded(origin.url())
                }
            }
            #expect(await eventually { session.poolStatus.waiting == 1 })
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            #expect(await eventually { session.poolStatus.waiting == 0 && session.runningCallCount == 1 })
            holder.close()
            #expect(session.poolStatus.leased == 0)
            try await expectNothingLeft(session, origin)
        }
    }

    @Test("A call that is cancelled before it starts, or while it awaits the 101", arguments: [false, true])
    func duringHandshake(isScoped: Bool) async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .signal("asked"), .awaitClose)) {
            origin in
            let session = HTTPSession.own(origin)
            func task(_ isCancelled: Bool) -> Task<Void, any Error> {
                Task {
                    while isCancelled, !Task.isCancelled { await Task.yield() }
                    if isScoped {
                        try await session.upgrade(origin.url(), to: "echo") { _ in _ = Issue.record("upgraded") }
                    } else {
                        _ = try await session.upgraded(origin.url())
                    }
                }
            }
            let cancelled = task(true)
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            #expect(await eventually { session.isEmpty })
            let asking = task(false)
            try await origin.signals.wait(for: "asked")
            asking.cancel()
            await #expect(throws: CancellationError.self) { try await asking.value }
            try await expectNothingLeft(session, origin)
        }
    }

    @Test("A call that is cancelled while a body follows an early 101")
    func duringBody() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\n\r\n"), .signal("switched"),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own(origin)
            // A source that ignores its cancellation.
            let body = HTTPBody.stream {
                AsyncStream<[UInt8]> {
                    _ = try? await Task { try await origin.signals.wait(for: "never", within: .seconds(20)) }.value
                    return nil
                }
            }
            let call = Task { _ = try await session.upgrade(origin.url(), to: "tcp", body: body) }
            try await origin.signals.wait(for: "switched")
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            try await expectNothingLeft(session, origin)
            origin.signals.raise("never")
        }
    }

    @Test("A cancelled read ends alone: the next one gets the bytes")
    func reading() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url())
            for _ in 1...20 {
                let read = Task { try await connection.read() }
                await Task.yield()
                read.cancel()
                await #expect(throws: CancellationError.self) { _ = try await read.value }
            }
            try await connection.write("kept")
            #expect(try await connection.read(exactly: 4) == bytes("kept"))
            connection.close()
            try await expectNothingLeft(session, origin)
        }
    }

    @Test(
        "A cancelled write closes the connection, and ends the waiting read",
        arguments: [OriginOptions.plain, .tls()].indices)
    func writing(_ kind: Int) async throws {
        let options = [OriginOptions.plain, .tls()][kind]
        try await TestOrigin.withOrigin(options) { _ in
            .upgrade(to: "deaf") { stream in
                _ = try await stream.read()
                // The sending direction fills; the end of the connection ends this.
                while true { try await stream.write([UInt8](repeating: 0, count: 1 << 16)) }
            }
        } run: { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url(), to: "deaf")
            let write = Task {
                while true { try await connection.write([UInt8](repeating: 0, count: 1 << 20)) }
            }
            #expect(await eventually { origin.recorder.counts.bytesSent > 1000 })
            write.cancel()
            await #expect(throws: CancellationError.self) { try await write.value }
            await #expect(throws: CancellationError.self) { _ = try await connection.read() }
            try await expectNothingLeft(session, origin)
        }
    }

    @Test("Cancelling the task of the closure ends its operations and closes the connection")
    func inClosure() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let (session, signals) = (HTTPSession.own(origin), origin.signals)
            let call = Task {
                try await session.upgrade(origin.url(), to: "echo") { connection in
                    signals.raise("open")
                    _ = try await connection.read()
                }
            }
            try await signals.wait(for: "open")
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            try await expectNothingLeft(session, origin)
        }
    }

    @Test("After close(), waiting and later operations throw CancellationError")
    func closed() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url())
            let read = Task { try await connection.read() }
            await Task.yield()
            connection.close()
            connection.close()
            #expect(session.poolStatus.leased == 0)
            await #expect(throws: CancellationError.self) { _ = try await read.value }
            await #expect(throws: CancellationError.self) { _ = try await connection.read() }
            await #expect(throws: CancellationError.self) { try await connection.closeWriting() }
            await #expect(throws: CancellationError.self) { try await connection.write("late") }
            try await expectNothingLeft(session, origin)
        }
    }

    @Test("A connection that is not closed is closed when it is released")
    func released() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            _ = try await session.upgrade(origin.url(), to: "echo")
            try await expectNothingLeft(session, origin)
        }
    }

    @Test("A call that is cancelled at any moment returns a connection or nothing")
    func races() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            for round in 0..<200 {
                let call = Task { try await session.upgraded(origin.url()) }
                for _ in 0..<(round % 40) { await Task.yield() }
                call.cancel()
                if case .success(let connection) = await call.result {
                    try await connection.write("x")
                    #expect(try await connection.read(exactly: 1) == bytes("x"))
                }
            }
            try await expectNothingLeft(session, origin)
        }
    }

    @Test("Invalidating the session closes the connection", arguments: [false, true])
    func invalidated(isScoped: Bool) async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            if isScoped {
                await #expect(throws: CancellationError.self) {
                    try await session.upgrade(origin.url(), to: "echo") { connection in
                        await session.invalidateAndCancel()
                        _ = try await connection.read()
                    }
                }
            } else {
                let connection = try await session.upgraded(origin.url())
                let read = Task { try await connection.read() }
                await session.finishAndInvalidate(within: .zero)
                await #expect(throws: CancellationError.self) { _ = try await read.value }
                await #expect(throws: CancellationError.self) { try await connection.write("late") }
            }
            try await expectNothingLeft(session, origin)
            await #expect(throws: HTTPError.self) { _ = try await session.upgraded(origin.url()) }
        }
    }

    @Test("RunningCall.cancel() closes the connection")
    func cancelledByTasks() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url())
            await session.tasks.first?.cancel()
            await #expect(throws: CancellationError.self) { _ = try await connection.read() }
            try await expectNothingLeft(session, origin)
        }
    }
}
