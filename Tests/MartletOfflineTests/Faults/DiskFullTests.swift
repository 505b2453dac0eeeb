import Glibc
import Martlet
import MartletOffline
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Offline queue: full queues and failing disks")
struct DiskFullTests {
    private static func queue(_ scene: OfflineScene, _ files: FaultyFileSystem) async throws -> OfflineQueue {
        try await OfflineQueue(
            session: OfflineScene.session, directory: scene.directory.directory,
            options: OfflineQueueOptions(backoff: OfflineScene.soon, sendsRequests: false), files: files)
    }

    @Test("A full queue rejects new requests and keeps the others, by count and by bytes")
    func full() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 400)
        } _: { scene in
            let queue = try await scene.queue {
                $0.limits = OfflineLimits(requests: 3, bytes: .kibibytes(100), inlineBodyLimit: .kibibytes(1))
            }
            let large = HTTPBody.bytes(Array(repeating: 65, count: 90_000))
            try await queue.submit(try scene.request(), body: large)
            var error = await #expect(throws: HTTPError.self) {
                try await queue.submit(try scene.request(), body: large)
            }
            #expect(error?.code == .limitExceeded)
            error = await #expect(throws: HTTPError.self) {
                try await queue.submit(
                    try scene.request(),
                    body: .stream {
                        AsyncStream<[UInt8]> { continuation in
                            for _ in 0..<10 { continuation.yield(Array(repeating: 66, count: 5000)) }
                            continuation.finish()
                        }
                    })
            }
            #expect(error?.code == .limitExceeded)
            // Dead letters count until they are dropped.
            try await queue.drained
            for _ in 0..<2 { try await queue.submit(try scene.request()) }
            error = await #expect(throws: HTTPError.self) { try await queue.submit(try scene.request()) }
            #expect(error?.code == .limitExceeded)
            #expect(error?.message.contains("full") == true)
            try await queue.drained
            #expect(
                try scene.directory.names().filter { $0.hasSuffix(".body") } == ["1.body"],
                "nothing half-written")
            for entry in await queue.entries { try await queue.drop(entry.ticket.id) }
            try await queue.submit(try scene.request(), body: large)
            try await queue.drained
            await queue.close()
        }
    }

    @Test("A thousand concurrent submissions fill ten free slots and no more")
    func manyAtOnce() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue {
                $0.sendsRequests = false
                $0.limits.requests = 10
            }
            let request = try scene.request()
            let taken = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<1000 {
                    group.addTask { (try? await queue.submit(request, body: .text("x"))) != nil }
                }
                return await group.reduce(into: 0) { if $1 { $0 += 1 } }
            }
            #expect(taken == 10)
            #expect(try scene.directory.names().count == 10)
            await queue.close()
        }
    }

    @Test(
        "A submission in which any file call fails throws and leaves the other requests intact"
    )
    func everyCall() async throws {
        let large = HTTPBody.bytes(Array(repeating: 65, count: 40_000))
        for code in [ENOSPC, EIO, EDQUOT] {
            for call in [FaultyFileSystem.Call.create, .write, .sync, .rename] {
                for body in [HTTPBody.text("small"), large] {
                    var skipped = 0
                    var isFailing = true
                    // The nth call of its kind, until there are no more.
                    while isFailing {
                        try await OfflineScene.run { scene in
                            let files = FaultyFileSystem()
                            let queue = try await DiskFullTests.queue(scene, files)
                            try await queue.submit(try scene.request(), body: .text("intact"), tag: "intact")
                            let before = try scene.directory.names()
                            files.fail(FaultyFileSystem.Fault(call, after: skipped, times: 1, code: code))
                            do {
                                try await queue.submit(try scene.request(), body: body)
                                isFailing = false
                            } catch let error as HTTPError {
                                #expect(error.code == (code == EIO ? .fileFailed : .diskFull))
                                #expect(try scene.directory.names() == before, "\(call) \(skipped)")
                                #expect(await queue.pendingCount == 1)
                            }
                            files.mend()
                            let ticket = try await queue.submit(try scene.request(), body: body, tag: "after")
                            #expect(ticket.id.number >= 2)
                            await queue.close()
                            let next = try await scene.queue()
                            try await next.drained
                            let count = scene.origin.requests.count
                            #expect(count == (isFailing ? 2 : 3))
                            await next.close()
                        }
                        skipped += 1
                        try #require(skipped < 40)
                    }
                }
            }
        }
    }

    @Test("On a full disk requests that may be repeated are sent and make room; the others wait")
    func drained() async throws {
        try await OfflineScene.run { scene in
            let first = try await scene.queue { $0.sendsRequests = false }
            for number in 0..<3 {
                try await first.submit(try scene.request(), body: .text("\(number)"), lane: "keyed")
            }
            var once = OfflineSubmission(lane: "once")
            once.key = .none
            try await first.submit(try scene.request(), body: .text("once"), as: once)
            await first.close()
            // No file that holds a request is written; the lock is another matter.
            let files = FaultyFileSystem()
            for call in [FaultyFileSystem.Call.create, .write] {
                files.fail(
                    FaultyFileSystem.Fault(call, path: ".request", after: 0, times: .max, code: ENOSPC))
            }
            let queue = try await OfflineQueue(
                session: OfflineScene.session, directory: scene.directory.directory,
                options: OfflineQueueOptions(backoff: OfflineScene.soon), files: files)
            while await queue.pendingCount > 1 { await Task.yield() }
            #expect(scene.origin.requests.count == 3)
            files.mend()
            try await queue.drained
            #expect(scene.origin.requests.count == 4)
            await queue.close()
        }
    }

    @Test("A disk failure during a delivery loses and repeats nothing: the result is written later")
    func failingEnds() async throws {
        for call in [FaultyFileSystem.Call.remove, .sync, .create, .write, .rename] {
            let serverLog = ServerLog()
            try await OfflineScene.run { request in
                try await serverLog.note(request)
                return .text("", status: request.path == "/dead" ? 400 : 200)
            } _: { scene in
                let files = FaultyFileSystem()
                let queue = try await OfflineQueue(
                    session: OfflineScene.session, directory: scene.directory.directory,
                    options: OfflineQueueOptions(backoff: OfflineScene.soon), files: files)
                let origin = scene.origin
                files.fail(FaultyFileSystem.Fault(call, after: 12, times: 6, code: EIO))
                for number in 0..<8 {
                    let request = try scene.request(.post, number % 3 == 1 ? "/dead" : "/good")
                    // The disk may reject it, which does not matter to this test.
                    while (try? await queue.submit(request, body: .text("\(number)"), lane: "a")) == nil {}
                }
                try await queue.drained
                #expect(serverLog.effects.count == 8, "\(call)")
                #expect(serverLog.effects == serverLog.effects.sorted())
                #expect(await queue.entries.count == 3)
                #expect(origin.requests.count >= 8)
                await queue.close()
            }
        }
    }

    @Test("A record that is temporarily unreadable is not lost: its lane waits")
    func unreadable() async throws {
        try await OfflineScene.run { scene in
            let files = FaultyFileSystem()
            let queue = try await OfflineQueue(
                session: OfflineScene.session, directory: scene.directory.directory,
                options: OfflineQueueOptions(backoff: OfflineScene.soon), files: files)
            files.fail(FaultyFileSystem.Fault(.read, path: ".request", times: 3, code: EIO))
            try await queue.submit(try scene.request(), tag: "kept")
            #expect(try await queue.delivered().keys.first == "kept")
            let ticket = try await queue.postponed(.storage)
            #expect(ticket.tag == "kept")
            await queue.close()
        }
    }
}
