import Glibc
import Martlet
import MartletOffline
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Offline queue: short calls, and descriptors that run out")
struct DescriptorExhaustionTests {
    private static func run(
        _ files: FaultyFileSystem, _ body: (OfflineScene, OfflineQueue, ServerLog) async throws -> Void
    ) async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            return .text("")
        } _: { scene in
            let queue = try await OfflineQueue(
                session: OfflineScene.session, directory: scene.directory.directory,
                options: OfflineQueueOptions(backoff: OfflineScene.soon), files: files)
            try await body(scene, queue, serverLog)
            await queue.close()
        }
    }

    @Test("Reads and writes that move a few bytes at a time are continued")
    func shortCalls() async throws {
        let files = FaultyFileSystem()
        files.limitPieces(to: 7)
        try await Self.run(files) { scene, queue, serverLog in
            let large = String(repeating: "0123456789", count: 3000)
            for body in ["small", large] { try await queue.submit(try scene.request(), body: .text(body)) }
            try await queue.drained
            #expect(serverLog.effects == ["small", large])
            #expect(try scene.directory.names() == [])
        }
    }

    @Test("Without free descriptors a submission throws, and stored requests wait and are sent later")
    func noDescriptors() async throws {
        let files = FaultyFileSystem()
        try await Self.run(files) { scene, queue, serverLog in
            for call in [FaultyFileSystem.Call.create, .open] {
                files.fail(FaultyFileSystem.Fault(call, times: 2, code: EMFILE))
                var kept = 0
                for number in 0..<4
                where
                    (try? await queue.submit(
                        try scene.request(), body: .text("\(call) \(number)"))) != nil
                {
                    kept += 1
                }
                #expect(kept >= 2)
                try await queue.drained
                files.mend()
            }
            #expect(Set(serverLog.effects).count == serverLog.effects.count)
            #expect(serverLog.entries.count == serverLog.effects.count)
            #expect(try scene.directory.names() == [])
        }
    }

    @Test("Thousands of requests wait and are found again, and large bodies stay on disk")
    func many() async throws {
        try await OfflineScene.run { scene in
            let keeping = try await scene.queue { $0.sendsRequests = false }
            let request = try scene.request()
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<8 {
                    group.addTask {
                        for number in 0..<250 {
                            _ = try? await keeping.submit(
                                request, body: .text("\(number)"), lane: "\(worker)",
                                tag: "\(worker) \(number)")
                        }
                    }
                }
            }
            #expect(await keeping.pendingCount == 2000)
            await keeping.close()
            let next = try await scene.queue { $0.sendsRequests = false }
            let entries = await next.entries
            #expect(entries.count == 2000)
            #expect(Set(entries.compactMap(\.ticket.tag)).count == 2000)
            #expect(entries.map(\.ticket.id) == entries.map(\.ticket.id).sorted())
            await next.close()
        }
    }
}
