import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@Suite("User code within a call")
struct UserCodeTests {
    @Test(
        "Calls that fill their host's limit can all make another call to it",
        arguments: UserHook.allCases, [10, 300_000])
    func nestedAtTheLimit(_ hook: UserHook, _ byteCount: UInt64) async throws {
        let scene = try UserScene(hook, byteCount: byteCount)
        defer { scene.clear() }
        try await TestOrigin.withOrigin(scene.originOptions) { request in
            try await scene.respond(to: request)
        } run: { origin async throws in
            let limit = 16
            let session = scene.session { $0.pool.connectionsPerHost = limit }
            let nested = Counter()
            let url = try HTTPURL(origin.url("/side"))
            scene.run {
                // Every call has its response, and would hold its connection.
                if UserHook.holding.contains(hook) {
                    _ = await eventually(within: TestTimeouts.long) { scene.requests.count >= limit }
                }
                var options = RequestOptions()
                options.authentication = AuthenticationSettings()
                options.timeouts = .patient(poolWait: TestTimeouts.ending)
                let request = HTTPRequest(method: .get, url: url)
                if (try? await session.send(request, options: options))?.text == "side" { nested.add() }
            }
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<limit {
                    group.addTask {
                        try await scene.call(session, origin).statusCode
                    }
                }
                for try await status in group { #expect(status == 200) }
            }
            #expect(nested.count == scene.entered.count)
            #expect(scene.entered.count >= 1)
            #expect(session.poolStatus.waiting == 0)
            await session.invalidateAndCancel()
        }
    }

    @Test(
        "A body is delivered completely after validation, whether or not it was read before",
        arguments: [0, 10, 300_000])
    func deliversAfterVerdict(_ byteCount: UInt64) async throws {
        let scene = try UserScene(.after, byteCount: byteCount)
        defer { scene.clear() }
        try await TestOrigin.withOrigin(scene.originOptions) { request in
            try await scene.respond(to: request)
        } run: { origin async throws in
            let session = scene.session()
            let expected = try await HTTPSession.own().get(origin.url("/start")).body
            #expect(expected.count == Int(byteCount))
            for _ in 0..<3 {
                #expect(try await scene.call(session, origin).body == expected)
                let request = try HTTPRequest(method: .get, url: origin.url("/start"))
                let streamed = try await session.stream(request) { _, body in try await body.collect() }
                #expect(streamed == expected)
            }
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test(
        "Cancelling the task of a call ends its wait for code that never returns",
        arguments: UserHook.allCases)
    func cancels(_ hook: UserHook) async throws {
        try await blocked(hook) { session, call in
            call.cancel()
        }
    }

    @Test("Invalidating a session ends its waits for code that never returns", arguments: UserHook.allCases)
    func invalidates(_ hook: UserHook) async throws {
        try await blocked(hook) { session, call in
            await session.invalidateAndCancel()
            #expect(session.runningCallCount == 0)
        }
    }

    private func blocked(
        _ hook: UserHook, end: (HTTPSession, Task<HTTPExchange, any Error>) async -> Void
    ) async throws {
        let scene = try UserScene(hook)
        defer { scene.clear() }
        try await TestOrigin.withOrigin(scene.originOptions) { request in
            try await scene.respond(to: request)
        } run: { origin async throws in
            let session = scene.session()
            scene.run { await scene.block() }
            let call = Task { try await scene.call(session, origin) }
            #expect(await eventually(within: TestTimeouts.long) { scene.entered.count > 0 })
            await end(session, call)
            let result = await call.result
            if UserHook.asking.contains(hook) {
                #expect(throws: CancellationError.self) { try result.get() }
            }
            scene.release()
        }
    }

    @Test(
        "Cancelling an HTTP task ends its wait for code that never returns",
        arguments: [UserHook.before, .after])
    func cancelsTask(_ hook: UserHook) async throws {
        let scene = try UserScene(hook)
        defer { scene.clear() }
        try await TestOrigin.withOrigin(scene.originOptions) { request in
            try await scene.respond(to: request)
        } run: { origin async throws in
            let session = scene.session()
            scene.run { await scene.block() }
            let task = await session.task(for: try HTTPRequest(method: .get, url: origin.url("/start")))
            #expect(await eventually(within: TestTimeouts.long) { scene.entered.count > 0 })
            await task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            scene.release()
        }
    }

    @Test("The total timeout ends a wait for code that never returns", arguments: UserHook.asking)
    func timesOut(_ hook: UserHook) async throws {
        let scene = try UserScene(hook)
        defer { scene.clear() }
        try await TestOrigin.withOrigin(scene.originOptions) { request in
            try await scene.respond(to: request)
        } run: { origin async throws in
            let session = scene.session()
            scene.run { await scene.block() }
            let error = await #expect(throws: HTTPError.self) {
                try await scene.call(session, origin, total: .seconds(1))
            }
            #expect(error?.code == .timedOut)
            #expect(error?.timeout == .total)
            // A stalled machine may not have reached the code.
            if scene.entered.count > 0, !UserHook.beside.contains(hook) {
                #expect(error?.message.contains("before the") == true, "\(error?.message ?? "")")
            }
            scene.release()
        }
    }

    @Test("An error of the code ends the call and releases its connection", arguments: UserHook.throwing)
    func throwing(_ hook: UserHook) async throws {
        let scene = try UserScene(hook)
        defer { scene.clear() }
        try await TestOrigin.withOrigin(scene.originOptions) { request in
            try await scene.respond(to: request)
        } run: { origin async throws in
            let session = scene.session { $0.pool.connectionsPerHost = 1 }
            scene.fail()
            let error = await #expect(throws: (any Error).self) { try await scene.call(session, origin) }
            switch hook {
            case .body, .part, .emptyBody:
                #expect((error as? HTTPError)?.underlying is UserFailure)
            case .resolver: #expect((error as? HTTPError)?.code == .resolutionFailed)
            default: #expect(error is UserFailure)
            }
            // It would wait for the only slot.
            let next = try await UserScene.$isInside.withValue(true) {
                try await session.get(origin.url("/side"))
            }
            #expect(next.text == "side")
        }
    }

    @Test(
        "Code within a call can invalidate the session, which cancels the call", arguments: UserHook.allCases)
    func invalidatesFromInside(_ hook: UserHook) async throws {
        let scene = try UserScene(hook)
        defer { scene.clear() }
        try await TestOrigin.withOrigin(scene.originOptions) { request in
            try await scene.respond(to: request)
        } run: { origin async throws in
            let session = scene.session()
            let returned = Counter()
            scene.run {
                await session.invalidateAndCancel()
                returned.add()
            }
            let result = await Task { try await scene.call(session, origin) }.result
            if UserHook.asking.contains(hook) {
                #expect(throws: CancellationError.self) { try result.get() }
            }
            #expect(await eventually(within: TestTimeouts.long) { returned.count == scene.entered.count })
            #expect(returned.count > 0)
            #expect(session.runningCallCount == 0)
        }
    }

    @Test("Closures of several streams can invalidate the session at the same time", arguments: [true, false])
    func invalidatesFromStreams(_ cancelling: Bool) async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let request = try HTTPRequest(method: .get, url: origin.url())
            let inside = Counter()
            let results = await withTaskGroup(of: Result<Int, any Error>.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        do {
                            return .success(
                                try await session.stream(request) { _, _ in
                                    inside.add()
                                    _ = await eventually(within: TestTimeouts.long) { inside.count == 3 }
                                    if cancelling {
                                        await session.invalidateAndCancel()
                                    } else {
                                        await session.finishAndInvalidate()
                                    }
                                    return 1
                                })
                        } catch {
                            return .failure(error)
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for result in results {
                if cancelling {
                    #expect(throws: CancellationError.self) { try result.get() }
                } else {
                    #expect(throws: Never.self) { try result.get() }
                }
            }
            #expect(session.runningCallCount == 0)
            await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
        }
    }
}
