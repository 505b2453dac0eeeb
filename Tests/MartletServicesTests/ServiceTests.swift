#if ServiceLifecycle
    import Foundation
    import Logging
    import Martlet
    import MartletTesting
    import ServiceLifecycle
    import Testing

    @Suite("Services of swift-service-lifecycle", .timeLimit(.minutes(20)))
    struct ServiceTests {
        private func withDirectory(_ body: (String) async throws -> Void) async throws {
            let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await body(path)
        }

        @Test(
            "A graceful shutdown or a cancellation closes both, and the next process continues",
            arguments: [true, false])
        func shutdown(isGraceful: Bool) async throws {
            let signals = OriginSignals()
            try await TestOrigin.withOrigin { request in
                signals.raise(request.path)
                if !signals.isRaised("open") { throw OriginFault(.stall) }
                return .text("done")
            } run: { origin async throws in
                try await withDirectory { directory async throws in
                    let session = HTTPSession.patient()
                    let file = "\(directory)/file"
                    let downloads = try await DownloadManager(session: session, directory: "\(directory)/downloads")
                    let queue = try await OfflineQueue(session: session, directory: "\(directory)/queue")
                    _ = try await downloads.add(origin.url("/file"), to: file)
                    let ticket = Task { try await queue.submit(origin.url("/note"), body: .text("x")) }
                    for path in ["/file", "/note"] { try await signals.wait(for: path) }
                    let group = ServiceGroup(services: [downloads, queue], logger: Logger(label: "test"))
                    let run = Task { try await group.run() }
                    if isGraceful { await group.triggerGracefulShutdown() } else { run.cancel() }
                    _ = await run.result
                    _ = try await ticket.value
                    signals.raise("open")
                    // Opening the directories fails unless they were released.
                    let next = try await DownloadManager(session: session, directory: "\(directory)/downloads")
                    let nextQueue = try await OfflineQueue(session: session, directory: "\(directory)/queue")
                    _ = try await next.allFinished
                    try await nextQueue.drained
                    #expect(try String(contentsOfFile: file, encoding: .utf8) == "done")
                    await next.close()
                    await nextQueue.close()
                }
            }
        }
    }
#endif
