import Martlet
import MartletDownloads
import Testing

@Suite("The results of all downloads", .timeLimit(.minutes(10)))
struct DownloadSummaryTests {
    private let scene = QueueScene()

    @Test("A wait for all returns what finished, failed and was cancelled, and can throw the first failure")
    func summary() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 9, perHost: 9))
        let ids = try await [scene.add("1", to: manager), scene.add("2", to: manager), scene.add("3", to: manager)]
        await scene.downloads.run("1", "2", "3")
        scene.downloads.end("1", .finish)
        scene.downloads.end("2", .fail(.diskFull))
        await manager.cancel(ids[2])
        let summary = try await manager.allFinished
        #expect(summary.finished[ids[0]]?.byteCount == 100 && summary.finished.count == 1)
        #expect(summary.failed[ids[1]]?.code == .diskFull && summary.failed.count == 1 && summary.cancelledCount == 1)
        #expect { try summary.requireSuccess() } throws: { ($0 as? HTTPError)?.code == .diskFull }
        #expect(manager.all.map(\.id) == [ids[0], ids[1]])
        await manager.retryFailed()
        scene.downloads.end("2", .finish)
        let second = try await manager.allFinished
        try second.requireSuccess()
        #expect(second.finished.count == 2 && second.failed.isEmpty)
        try await manager.removeFinished()
        #expect(manager.all.isEmpty)
        #expect(try scene.names.allSatisfy { !$0.hasSuffix(".item") })
        await manager.close()
    }

    @Test("Closing returns what finished, failed and was cancelled, without unfinished downloads, each time")
    func closing() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 9, perHost: 9))
        var ids: [DownloadID] = []
        for name in ["1", "2", "3", "4", "5"] { ids.append(try await scene.add(name, to: manager)) }
        await scene.downloads.run("1", "2", "3", "4", "5")
        scene.downloads.end("1", .finish)
        scene.downloads.end("2", .fail(.diskFull))
        await manager.reach(ids[0], "finished")
        await manager.reach(ids[1], "failed diskFull")
        await manager.cancel(ids[2])
        await manager.pause(ids[3])
        for _ in 0..<2 {
            let summary = await manager.close()
            #expect(Array(summary.finished.keys) == [ids[0]])
            #expect(summary.cancelledCount == 1)
            #expect(summary.failed.mapValues(\.code) == [ids[1]: .diskFull])
        }
    }

    @Test("A failed download of an earlier process is in the summary, and is retried with the others")
    func earlier() async throws {
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first)
        await scene.downloads.run("1")
        scene.downloads.end("1", .fail(.connectionLost))
        _ = try await first.allFinished
        await first.close()
        let second = try await scene.manager()
        #expect(try await second.allFinished.failed[id]?.code == .connectionLost)
        #expect(second.all.first?.state.word == "failed connectionLost")
        await second.retryFailed()
        scene.downloads.end("1", .finish)
        try await second.allFinished.requireSuccess()
        await second.close()
    }

    @Test("A download that is added again is the existing one, in each state and in the next process")
    func existing() async throws {
        let manager = try await scene.manager()
        func add(_ manager: DownloadManager, _ name: String, to target: DownloadTarget) async throws -> DownloadID {
            try await manager.add("https://a.example/\(name)", to: target, ifPresent: .existing)
        }
        let folder = DownloadTarget.directory("/data")
        let id = try await add(manager, "1", to: folder)
        // The signature of the URL is not compared.
        #expect(try await add(manager, "1?X-Amz-Signature=1&X-Amz-Date=2", to: folder) == id)
        #expect(try await add(manager, "2", to: folder) != id)
        #expect(try await add(manager, "1", to: .file("/other/1")) != id)
        await manager.pause(id)
        #expect(try await add(manager, "1", to: folder) == id && manager.word(id) == "paused")
        // After a move, both URLs are those of the download.
        try await manager.resume(id, from: "https://a.example/moved")
        for name in ["1", "moved"] { #expect(try await add(manager, name, to: folder) == id) }
        await manager.cancel(id)
        let next = try await add(manager, "1", to: folder)
        #expect(next != id)
        // Another URL for the same file.
        let file = try await add(manager, "3", to: .file("/data/3"))
        #expect(try await add(manager, "4", to: .file("/data/./3")) == file)
        await manager.close()
        let later = try await scene.manager(DownloadLimits(concurrentFiles: 9, perHost: 9))
        #expect(try await add(later, "1", to: folder) == next)
        scene.downloads.endAll(.finish)
        _ = try await later.allFinished
        #expect(try await add(later, "1", to: folder) == next && later.word(next) == "finished")
        await later.close()
    }

    @Test("Of concurrent additions of one download, one adds it")
    func concurrent() async throws {
        let manager = try await scene.manager()
        let ids = try await withThrowingTaskGroup(of: DownloadID.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await manager.add("https://a.example/1", to: .directory("/data"), ifPresent: .existing)
                }
            }
            return try await group.reduce(into: Set<DownloadID>()) { $0.insert($1) }
        }
        #expect(ids.count == 1 && manager.all.count == 1)
        await manager.close()
    }

    @Test("Events have the URL, and commands for an unknown download or a closed manager are errors")
    func commands() async throws {
        let manager = try await scene.manager()
        let id = try await manager.add("https://user:secret@a.example/1", to: "/data/1")
        await manager.pause(id)
        var urls: [String] = []
        for await event in manager.events {
            switch event {
            case .added(_, let url), .began(_, let url): urls.append(url.absoluteString)
            case .paused(_, let url):
                urls.append(url.absoluteString)
            default: continue
            }
            if case .paused = event { break }
        }
        #expect(Set(urls) == ["https://a.example/1"])
        func codes() async -> [HTTPError.Code?] {
            var codes: [HTTPError.Code?] = []
            do { try await manager.setPriority(.high, of: DownloadID(99)) } catch {
                codes.append((error as? HTTPError)?.code)
            }
            do { try await manager.setBandwidth(nil, of: DownloadID(99)) } catch {
                codes.append((error as? HTTPError)?.code)
            }
            do { try await manager.resume(DownloadID(99)) } catch { codes.append((error as? HTTPError)?.code) }
            do { try await manager.remove(DownloadID(99)) } catch { codes.append((error as? HTTPError)?.code) }
            return codes
        }
        #expect(await codes() == Array(repeating: .invalidRequest, count: 4))
        await manager.close()
        #expect(await codes() == Array(repeating: .downloadManagerClosed, count: 4))
    }
}
