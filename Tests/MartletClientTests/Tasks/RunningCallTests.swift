import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletCore

@Suite("Running calls and task states")
struct RunningCallTests {
    @Test("Each running call is listed with its kind and URL and can be cancelled from the list")
    func listed() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            if request.path.hasPrefix("/body") {
                return OriginResponse.pattern(200_000).with {
                    $0.fault = OriginFault(.stall, afterBodyBytes: 100_000)
                }
            }
            throw OriginFault(.stall)
        } run: { origin async throws in
            let session = HTTPSession.own()
            let stream = try HTTPRequest(method: .get, url: origin.url("/body/stream"))
            let file = try HTTPRequest(method: .get, url: origin.url("/body/file"))
            let calls: [Task<Void, any Error>] = [
                Task { _ = try await session.get(origin.url("/get")) },
                Task { _ = try await session.post(origin.url("/post"), body: .bytes([1, 2, 3])) },
                Task { _ = try await session.save(file, to: directory.path + "/file", overwrites: false) },
                Task { try await session.stream(stream) { _, body in for try await _ in body {} } },
                Task { for try await _ in try await session.open(origin.url("/body/open")).body {} },
            ]
            #expect(await eventually { session.runningCallCount == 5 })
            try await origin.waitForRequests(count: 5)
            let list = await session.tasks
            let kinds = Dictionary(uniqueKeysWithValues: list.map { ($0.url?.path ?? "", $0.kind) })
            #expect(
                kinds == [
                    "/get": .data, "/post": .upload, "/body/file": .download, "/body/stream": .stream,
                    "/body/open": .stream,
                ])
            #expect(Set(list.map(\.id)).count == 5)
            #expect(await session.tasks.map(\.id) == list.map(\.id))
            #expect(await session.tasks(of: .stream).count == 2)
            for call in list where call.url?.path.hasPrefix("/body") == true {
                #expect(await eventually { call.downloadProgress.completedByteCount == 100_000 })
                #expect(call.downloadProgress.totalByteCount == 200_000)
                #expect(call.state == .receiving)
            }
            let post = try #require(list.first { $0.kind == .upload })
            #expect(post.request.method == .post && post.task == nil)
            #expect(await eventually { post.uploadProgress.fractionCompleted == 1 })
            #expect(post.state == .sending)
            for call in list { call.cancel() }
            for call in calls { await #expect(throws: CancellationError.self) { try await call.value } }
            #expect(await session.tasks.isEmpty)
        }
    }

    @Test("Task states arrive immediately, and late subscribers also receive the last one")
    func states() async throws {
        let script = ServerScript(
            .expectRequestHead, .await("head"), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
            .await("body"), .send("ok"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let session = HTTPSession.own()
            let task = await session.task(for: try HTTPRequest(.get, origin))
            let all = Task {
                var all: [HTTPTask.State] = []
                for await state in task.states { all.append(state) }
                return all
            }
            func reaches(_ state: HTTPTask.State) async -> Bool {
                for await next in task.states where next == state { return true }
                return false
            }
            #expect(await reaches(.sending))
            origin.signals.raise("head")
            #expect(await reaches(.receiving))
            await task.pause()
            #expect(await reaches(.paused))
            await task.resume()
            #expect(await reaches(.receiving))
            origin.signals.raise("body")
            #expect(await reaches(.finished(.completed)))
            #expect(try await task.value.text == "ok")
            #expect(await all.value.last == .finished(.completed))
            for _ in 0..<2 {
                var late: [HTTPTask.State] = []
                for await state in task.states { late.append(state) }
                #expect(late == [.finished(.completed)])
            }
        }
    }

    @Test("A call has one number in its response, error, events, contexts, task and list entry")
    func number() async throws {
        struct Recorded: HTTPMiddleware {
            let number = Promise<UInt64>()
            func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
                -> HTTPCall.Response
            {
                number.settle(.success(context.number))
                return try await next(request)
            }
        }
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            guard request.path == "/moved" else { return .text("a") }
            try await signals.wait(for: "go")
            return .redirect(to: "/")
        } run: { origin async throws in
            signals.use(origin)
            let recorded = Recorded()
            let session = HTTPSession.own { $0.middleware = [recorded] }
            let task = await session.task(for: origin.url("/moved"))
            try await origin.waitForRequests(count: 1)
            #expect(await session.tasks.map(\.id) == [task.id])
            signals.raise("go")
            #expect(try await task.value.callNumber == task.id)
            #expect(try await recorded.number.value == task.id)
            let events = session.events
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(origin.url(), validate: .status(201))
            }
            let number = try #require(error?.callNumber)
            #expect(number > task.id)
            await session.finishAndInvalidate()
            var numbers: Set<UInt64> = []
            for await event in events { if let call = event.call { numbers.insert(call) } }
            #expect(numbers == [number])
            let rejected = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(rejected?.callNumber == nil)
        }
    }

    @Test("The state shows a task that waits for a connection, fails or is cancelled")
    func waiting() async throws {
        try await TestOrigin.withOrigin { _ in
            throw OriginFault(.stall)
        } run: { origin async throws in
            let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
            let first = await session.task(for: try HTTPRequest(.get, origin))
            try await origin.waitForRequests(count: 1)
            let second = await session.task(for: try HTTPRequest(.get, origin))
            #expect(await eventually { session.poolStatus.waiting == 1 })
            #expect(await second.state == .waiting)
            let listed = await session.tasks
            #expect(listed.map(\.id) == [first.id, second.id])
            #expect(listed.allSatisfy { $0.task != nil })
            listed[1].cancel()
            var last: HTTPTask.State?
            for await state in second.states { last = state }
            #expect(last == .finished(.cancelled))
            await first.cancel()
            for await state in first.states { last = state }
            #expect(last == .finished(.cancelled))
        }
    }

    @Test("The shared session sends requests and cannot be ended")
    func shared() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("page"))) { origin async throws in
            #expect(try await HTTPSession.shared.get(origin.url()).text == "page")
            await HTTPSession.shared.invalidateAndCancel()
            await HTTPSession.shared.with { $0.userAgent = nil }.finishAndInvalidate()
            #expect(HTTPSession.shared === HTTPSession.shared)
            #expect(try await HTTPSession.shared.get(origin.url()).metrics.isConnectionReused)
        }
    }
}
