import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Tasks paused while they wait for a connection")
struct PausedInQueueTests {
    /// Runs an origin whose `/held` waits for a signal, and a session.
    private func withHeld(
        connectionsPerHost: Int?, _ run: @Sendable (TestOrigin, HTTPSession) async throws -> Void
    ) async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            if request.path == "/held" { try await signals.wait(for: "go") }
            return .text(request.path)
        } run: { origin in
            signals.use(origin)
            let session = HTTPSession.own { configuration in
                if let connectionsPerHost { configuration.pool.connectionsPerHost = connectionsPerHost }
            }
            try await run(origin, session)
        }
    }

    @Test("Many paused tasks do not block other calls to their host")
    func pausedKeepNothing() async throws {
        let limit = PoolLimits().connectionsPerHost
        try await withHeld(connectionsPerHost: nil) { origin, session in
            var holding: [HTTPTask] = []
            for _ in 0..<limit {
                holding.append(await session.task(for: try HTTPRequest(.get, origin, "/held")))
            }
            try await origin.waitForRequests(count: limit)
            var paused: [HTTPTask] = []
            for _ in 0..<limit + 8 {
                paused.append(await session.task(for: try HTTPRequest(.get, origin, "/paused")))
            }
            #expect(await eventually { session.poolStatus.waiting == limit + 8 })
            for task in paused { await task.pause() }
            // A task that has just requested its slot may leave the queue a moment later.
            #expect(await eventually { session.poolStatus.waiting == 0 })
            origin.signals.raise("go")
            for task in holding { #expect(try await task.value.text == "/held") }
            let other = try await session.get(
                origin.url("/other"), options: RequestOptions(timeouts: .patient(total: TestTimeouts.ending)))
            #expect(other.text == "/other")
            #expect(!origin.requests.contains { $0.target == "/paused" })
            for task in paused {
                #expect(await task.state == .paused)
                await task.resume()
            }
            for task in paused { #expect(try await task.value.text == "/paused") }
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("A resumed task has its previous position in the queue")
    func oldPlace() async throws {
        try await withHeld(connectionsPerHost: 1) { origin, session in
            let first = await session.task(for: try HTTPRequest(.get, origin, "/held"))
            try await origin.waitForRequests(count: 1)
            var line: [HTTPTask] = []
            for name in ["/a", "/b", "/c"] {
                line.append(await session.task(for: try HTTPRequest(.get, origin, name)))
                #expect(await eventually { session.poolStatus.waiting == line.count })
            }
            await line[0].pause()
            #expect(await eventually { session.poolStatus.waiting == 2 })
            await line[0].resume()
            #expect(await eventually { session.poolStatus.waiting == 3 })
            // Repeated without a moment in between.
            await line[1].pause()
            await line[1].resume()
            #expect(await eventually { session.poolStatus.waiting == 3 })
            origin.signals.raise("go")
            for task in [first] + line { _ = try await task.value }
            #expect(origin.requests.map(\.target) == ["/held", "/a", "/b", "/c"])
        }
    }

    @Test(
        "A task paused in the queue ends when it is cancelled or its total timeout expires"
    )
    func endsWhilePaused() async throws {
        try await withHeld(connectionsPerHost: 1) { origin, session in
            let first = await session.task(for: try HTTPRequest(.get, origin, "/held"))
            try await origin.waitForRequests(count: 1)
            let cancelled = await session.task(for: try HTTPRequest(.get, origin, "/a"))
            #expect(await eventually { session.poolStatus.waiting == 1 })
            await cancelled.pause()
            await cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }

            let late = await session.task(
                for: try HTTPRequest(.get, origin, "/b"),
                options: RequestOptions(timeouts: .patient(total: .seconds(2))))
            _ = await eventually { session.poolStatus.waiting == 1 }
            await late.pause()
            let error = await #expect(throws: HTTPError.self) { try await late.value }
            #expect(error?.timeout == .total && error?.wasSent == false)
            origin.signals.raise("go")
            #expect(try await first.value.text == "/held")
        }
    }

    @Test("Pausing suspends the timeout for a connection")
    func poolClockStands() async throws {
        try await withEnoughTime(from: .milliseconds(300), run: outlastsPause)
    }

    /// Pauses a task for longer than its timeout for a connection.
    /// - Returns: Whether it was paused before the timeout could expire.
    private func outlastsPause(poolWait: Duration) async throws -> Bool {
        let isInTime = Counter()
        try await withHeld(connectionsPerHost: 1) { origin, session in
            let first = await session.task(for: try HTTPRequest(.get, origin, "/held"))
            try await origin.waitForRequests(count: 1)
            let start = ContinuousClock.now
            let second = await session.task(
                for: try HTTPRequest(.get, origin, "/a"),
                options: RequestOptions(timeouts: .patient(poolWait: poolWait)))
            _ = await eventually(within: poolWait) { session.poolStatus.waiting == 1 }
            await second.pause()
            guard ContinuousClock.now - start < poolWait else {
                await second.cancel()
                origin.signals.raise("go")
                _ = try await first.value
                return
            }
            isInTime.add()
            // Another call waits for longer in that time and is ended.
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(
                    origin.url("/b"),
                    options: RequestOptions(timeouts: .patient(poolWait: poolWait * 3 / 2)))
            }
            #expect(error?.timeout == .poolWait)
            #expect(await second.state == .paused)
            origin.signals.raise("go")
            _ = try await first.value
            await second.resume()
            #expect(try await second.value.text == "/a")
        }
        return isInTime.count > 0
    }

    @Test(
        "Tasks paused and resumed at any moment all end and leave no connection open"
    )
    func anyMoment() async throws {
        try await withHeld(connectionsPerHost: 3) { origin, session in
            origin.signals.raise("go")
            var tasks: [HTTPTask] = []
            for index in 0..<60 {
                tasks.append(await session.task(for: try HTTPRequest(.get, origin, "/\(index)")))
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, task) in tasks.enumerated() {
                    group.addTask {
                        for _ in 0..<20 {
                            await task.pause()
                            if Bool.random() { await Task.yield() }
                            await task.resume()
                            await Task.yield()
                        }
                        let text = try await task.value.text
                        #expect(text == "/\(index)")
                    }
                }
                try await group.waitForAll()
            }
            #expect(await eventually { session.diagnostics.isIdle })
            #expect(session.poolStatus.leased == 0 && session.poolStatus.waiting == 0)
        }
    }
}
