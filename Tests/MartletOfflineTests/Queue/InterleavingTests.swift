import Glibc
import Martlet
import MartletOffline
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Offline queue: interleaved events")
struct InterleavingTests {
    @Test(
        "Releasing a queue ends its sends and frees the directory",
        .timeLimit(.minutes(2)))
    func lettingGo() async throws {
        try await OfflineScene.run { _ in
            throw OriginFault(.stall)
        } _: { scene in
            var queue: OfflineQueue? = try await scene.queue()
            let events = try #require(queue?.events)
            try await queue?.submit(try scene.request())
            try await scene.origin.waitForRequests(count: 1)
            queue = nil
            var hasEnded = false
            for await _ in events {}
            while !hasEnded, !Task.isCancelled {
                let next = try? await scene.queue { $0.sendsRequests = false }
                await next?.close()
                hasEnded = next != nil
            }
            #expect(hasEnded)
            #expect(try scene.directory.names() == ["1.request"])
        }
    }

    @Test("A queue that only stores queues requests immediately", .timeLimit(.minutes(2)))
    func keeping() async throws {
        try await OfflineScene.run { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session) { $0.sendsRequests = false }
            guard case .queued = try await session.send(try scene.request(), whenOffline: .enqueue) else {
                Issue.record("it was sent")
                return
            }
            #expect(scene.origin.requests.isEmpty)
            await queue.close()
        }
    }

    @Test("A request that waits after a postponed one is queued with it", .timeLimit(.minutes(2)))
    func behindPostponed() async throws {
        let (gate, opener) = AsyncStream<Void>.makeStream()
        try await OfflineScene.run { _ in
            for await _ in gate {}
            return .text("", status: 503)
        } _: { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session) { $0.backoff = OfflineScene.never }
            try await queue.submit(try scene.request(), tag: "first")
            try await scene.origin.waitForRequests(count: 1)
            let request = try scene.request()
            let second = Task { try await session.send(request, whenOffline: .enqueue(tag: "second")) }
            _ = try await queue.first { event -> Bool? in
                if case .submitted(let ticket) = event, ticket.tag == "second" { true } else { nil }
            }
            opener.finish()
            guard case .queued = try await second.value else {
                Issue.record("it was sent")
                return
            }
            #expect(scene.origin.requests.count == 1)
            await queue.close()
        }
    }

    @Test("A request without a key that surely was not received is sent by the next process")
    func keylessPostponed() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { _ in
            .text("", status: 503)
        } _: { scene in
            let queue = try await scene.queue { $0.backoff = OfflineScene.never }
            try await queue.submit(
                try scene.request(), body: .text("once"), as: OfflineSubmission(key: .none))
            _ = try await queue.postponed(.refused)
            await queue.close()
            scene.answer { request in
                try await serverLog.note(request)
                return .text("")
            }
            let next = try await scene.queue()
            try await next.drained
            #expect(await next.entries.isEmpty)
            #expect(serverLog.effects == ["once"])
            await next.close()
        }
    }

    @Test("A submission that is running when its queue is closed writes nothing into the next owner's directory")
    func closedWhileSubmitting() async throws {
        for size in [10, 100_000] {
            try await OfflineScene.run { scene in
                let queue = try await scene.queue()
                let (opened, opening) = AsyncStream<Void>.makeStream()
                let (bytes, source) = AsyncStream<[UInt8]>.makeStream()
                let request = try scene.request()
                let task = Task {
                    try await queue.submit(
                        request,
                        body: .stream {
                            opening.finish()
                            return bytes
                        })
                }
                for await _ in opened {}
                await queue.close()
                let next = try await scene.queue { $0.sendsRequests = false }
                source.yield(Array(repeating: 65, count: size))
                source.finish()
                await #expect(throws: HTTPError.self) { try await task.value }
                #expect(try scene.directory.names().filter { $0.hasSuffix(".request") } == [])
                await next.close()
            }
        }
    }

    @Test("Concurrent retries and drops leave exactly the queue's requests on disk")
    func retryAndDrop() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 400)
        } _: { scene in
            let queue = try await scene.queue()
            var tickets: [OfflineTicket] = []
            for number in 0..<150 {
                tickets.append(try await queue.submit(try scene.request(), lane: "\(number)"))
            }
            try await queue.drained
            await withTaskGroup(of: Void.self) { group in
                for ticket in tickets {
                    group.addTask { try? await queue.retry(ticket.id) }
                    group.addTask { try? await queue.retry(ticket.id) }
                    group.addTask { try? await queue.drop(ticket.id) }
                }
            }
            try await queue.drained
            let held = await queue.entries.map { "\($0.ticket.id).request" }
            await queue.close()
            #expect(try scene.directory.names() == held.sorted())
        }
    }

    @Test("A request whose result cannot be written can be dropped", .timeLimit(.minutes(2)))
    func dropsWhatCannotRest() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 400)
        } _: { scene in
            let files = FaultyFileSystem()
            let queue = try await OfflineQueue(
                session: OfflineScene.session, directory: scene.directory.directory,
                options: OfflineQueueOptions(backoff: OfflineScene.never), files: files)
            files.fail(FaultyFileSystem.Fault(.create, path: ".request.new", after: 2, code: ENOSPC))
            let ticket = try await queue.submit(try scene.request())
            _ = try await queue.first { event -> Bool? in
                if case .fileFailed = event { true } else { nil }
            }
            try await queue.drop(ticket.id)
            #expect(try scene.directory.names() == [])
            try await queue.drained
            await queue.close()
        }
    }

    @Test(
        "A keyless request whose redirect target gives no response is uncertain",
        arguments: [302, 303])
    func redirectedElsewhere(_ redirect: Int) async throws {
        for status in [401, 404, 503] {
            try await OfflineScene.run { request in
                request.method == .post
                    ? .redirect(to: "/result", status: redirect) : .text("", status: status)
            } _: { scene in
                let queue = try await scene.queue { $0.backoff = OfflineScene.soon }
                try await queue.submit(
                    try scene.request(), body: .text("once"), as: OfflineSubmission(key: .none))
                let isUncertain = try await queue.first { event -> Bool? in
                    switch event {
                    case .uncertain: true
                    case .dead, .postponed: false
                    default: nil
                    }
                }
                #expect(isUncertain, "\(status)")
                await queue.close()
                #expect(scene.origin.requests.filter { $0.method == .post }.count == 1)
            }
        }
    }
}
