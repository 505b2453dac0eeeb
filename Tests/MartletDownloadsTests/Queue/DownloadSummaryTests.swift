import Foundation
import Martlet
import MartletDownloads
import MartletTesting
import MartletTestSupport
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
        #expect(summary.finished[ids[0]]?.description == "/data/1: 100 bytes, 0 resumed")
        #expect(summary.unfinished.isEmpty)
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

    @Test("Closing returns what finished, failed, was cancelled and is unfinished, each time")
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
            #expect(summary.unfinished == [ids[3]: .paused, ids[4]: .waiting])
            #expect("\(summary)" == "1 finished, 1 failed, 2 unfinished, 1 cancelled")
        }
        #expect(manager.all.map { $0.state.word } == ["finished", "failed diskFull", "paused", "waiting"])
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
        let directory = DownloadTarget.directory(scene.directory)
        let id = try await add(manager, "1", to: directory)
        // The signature of the URL is not compared.
        #expect(try await add(manager, "1?X-Amz-Signature=1&X-Amz-Date=2", to: directory) == id)
        // Neither is the fragment.
        #expect(try await add(manager, "1#sha256=1", to: directory) == id)
        #expect(try await add(manager, "2", to: directory) != id)
        #expect(try await add(manager, "1", to: .file("/other/1")) != id)
        await manager.pause(id)
        #expect(try await add(manager, "1", to: directory) == id && manager.word(id) == "paused")
        // After a move, both URLs are those of the download.
        try await manager.resume(id, from: "https://a.example/moved")
        for name in ["1", "moved"] { #expect(try await add(manager, name, to: directory) == id) }
        await manager.cancel(id)
        let next = try await add(manager, "1", to: directory)
        #expect(next != id)
        // Another URL for the same file.
        let file = try await add(manager, "3", to: .file("/data/3"))
        #expect(try await add(manager, "4", to: .file("/data/./3")) == file)
        await manager.close()
        let later = try await scene.manager(DownloadLimits(concurrentFiles: 9, perHost: 9))
        #expect(try await add(later, "1", to: directory) == next)
        scene.downloads.endAll(.finish)
        _ = try await later.allFinished
        try scene.write([1], to: "1")
        #expect(try await add(later, "1", to: directory) == next && later.word(next) == "finished")
        // Its file is gone, so it is downloaded again.
        try FileManager.default.removeItem(atPath: "\(scene.path)/1")
        let again = try await add(later, "1", to: directory)
        #expect(again != next && later.download(next) == nil && later.download(again) != nil)
        await later.close()
    }

    @Test("With a limit of no concurrent downloads, the stored ones are listed and changed, and none starts")
    func idle() async throws {
        let first = try await scene.manager(DownloadLimits(concurrentFiles: 0))
        let ids = try await [scene.add("1", to: first), scene.add("2", to: first)]
        await first.close()
        let second = try await scene.manager(DownloadLimits(concurrentFiles: 0))
        #expect(second.all.map { $0.state.word } == ["waiting", "waiting"])
        await second.cancel(ids[0])
        await second.setLimits(DownloadLimits())
        await scene.downloads.run("2")
        #expect(second.word(ids[1]) == "running")
        await second.close()
    }

    @Test("An existing download keeps its options, and is not returned for a checksum that it is not compared with")
    func checksums() async throws {
        let manager = try await scene.manager()
        let digits = "d41d8cd98f00b204e9800998ecf8427e"
        let other = Checksum.sha256(String(repeating: "0", count: 64))
        func add(_ checksum: Checksum?, segments: Int = 4) async throws -> DownloadID {
            try await manager.add(
                "https://a.example/1", to: scene.directory.appending("1"),
                options: DownloadOptions(segments: segments, checksum: checksum), ifPresent: .existing)
        }
        let id = try await add(.md5(digits), segments: 9)
        for isFinished in [false, true] {
            if isFinished {
                scene.downloads.end("1", .finish)
                _ = try await manager.allFinished
                try scene.write([1], to: "1")
            }
            #expect(try await add(.md5(digits.uppercased())) == id)
            #expect(try await add(nil, segments: 2) == id)
            let error = await #expect(throws: HTTPError.self) { try await add(other) }
            #expect(error?.code == .invalidRequest && error?.message.contains("md5=\(digits)") == true)
            #expect(error?.message.contains("remove it") == true && error?.url?.path == "/1")
        }
        let options = try #require(manager.download(id)).options
        #expect(options.segments == 9 && options.checksum == .md5(digits))
        try await manager.remove(id)
        let next = try await add(nil)
        #expect(next != id)
        let error = await #expect(throws: HTTPError.self) { try await add(other) }
        #expect(error?.message.contains("no checksum") == true)
        await manager.cancel(next)
        #expect(try await add(other) != next)
        await manager.close()
    }

    @Test("The options of a download are readable without credentials, in the next process too")
    func options() async throws {
        let options = DownloadOptions(
            segments: 9, headers: [.accept: "image/*", .cookie: "s=secret"],
            request: RequestOptions(timeouts: Timeouts(connect: .seconds(3))))
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first, options: options)
        try await first.setBandwidth(.bytesPerSecond(1000), of: id)
        let current = try #require(first.download(id)).options
        await first.close()
        let second = try await scene.manager()
        for options in [current, try #require(second.download(id)).options] {
            #expect(options.segments == 9 && options.headers == [.accept: "image/*"])
            #expect(options.request.timeouts.connect == .seconds(3))
            #expect(options.bandwidth == .bytesPerSecond(1000))
        }
        await second.close()
    }

    @Test("A failure is an event with the URL, without user info and fragment")
    func failure() async throws {
        let manager = try await scene.manager()
        let id = try await manager.add("https://user:secret@a.example/1#top", to: "/data/1")
        #expect(manager.download(id)?.url.absoluteString == "https://a.example/1")
        scene.downloads.end("1", .fail(.diskFull))
        for await event in manager.events {
            guard case .failed(id, let url, let error) = event else { continue }
            #expect(url.absoluteString == "https://a.example/1" && error.code == .diskFull)
            break
        }
        await manager.close()
    }

    @Test("A retry is an event with the URL and the delay")
    func retry() async throws {
        try await RangeScene.with(Samples.cutOnce()) { ranges in
            let manager = try await DownloadManager(session: ranges.session, directory: scene.directory)
            let id = try await manager.add(
                ranges.url, to: ranges.path, options: RangeScene.options { $0.segments = 1 })
            _ = try await manager.allFinished
            var retries: [String] = []
            for await event in manager.events {
                if case .retrying(id, let url, _, let delay) = event {
                    retries.append(url.absoluteString)
                    #expect(delay <= .milliseconds(20))
                }
                if case .finished = event { break }
            }
            #expect(retries == [ranges.url])
            await manager.close()
        }
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
