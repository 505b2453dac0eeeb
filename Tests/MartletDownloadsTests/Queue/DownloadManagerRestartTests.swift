import Martlet
import MartletStorage
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("Downloads that outlive their manager", .timeLimit(.minutes(10)))
struct DownloadManagerRestartTests {
    private let scene = QueueScene()

    @Test("Transfers belong to a directory, and the next manager resumes them")
    func goesOn() async throws {
        let first = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        let ids = [try await scene.add("1", to: first), try await scene.add("2", to: first)]
        await scene.downloads.run("1")
        await first.close()
        #expect(scene.downloads.running.value.isEmpty)
        let second = try await scene.manager()
        #expect(second.ids == ids)
        await scene.downloads.run("1", "2")
        scene.downloads.endAll(.finish)
        _ = try await second.allFinished
        #expect(scene.downloads.record("1").plans.count == 2)
        await second.close()
        let third = try await scene.manager()
        _ = try await third.allFinished
        guard case .finished(let result) = third.download(ids[0])?.state else {
            Issue.record("\(third.word(ids[0]))")
            return
        }
        #expect(result.path == "/data/1" && result.byteCount == 100 && result.resumedByteCount == 10)
        #expect(third.download(ids[0])?.progress.current.fractionCompleted == 1)
        #expect(try await third.download(ids[0])?.value == result)
        await third.close()
    }

    @Test(
        "A paused download resumes in another process with its stored bytes and progress"
    )
    func resumeData() async throws {
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first)
        await scene.downloads.run("1")
        await first.pause(id)
        await first.close()
        let second = try await scene.manager()
        let download = try #require(second.download(id))
        #expect(download.state.word == "paused")
        let progress = download.progress.current
        #expect(progress.completedByteCount == 10 && progress.totalByteCount == 100 && progress.isFinished)
        #expect(scene.downloads.record("1").runs == 1)
        try await download.resume()
        await scene.downloads.run("1")
        scene.downloads.end("1", .finish)
        #expect(try await download.value.resumedByteCount == 10)
        await second.close()
    }

    @Test("Failed downloads stay failed, with their error, until they are resumed")
    func failed() async throws {
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first)
        scene.downloads.end("1", .fail(.checksumMismatch))
        await first.reach(id, "failed checksumMismatch")
        await first.close()
        let second = try await scene.manager()
        _ = try await second.allFinished
        guard case .failed(let error) = second.download(id)?.state else {
            Issue.record("\(second.word(id))")
            return
        }
        #expect(error.code == .checksumMismatch && error.message == "as the test says")
        try await second.resume(id)
        scene.downloads.end("1", .finish)
        _ = try await second.allFinished
        #expect(second.word(id) == "finished")
        await second.close()
    }

    @Test("Priority, queue position, options and a new URL are restored")
    func settings() async throws {
        let first = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        try await scene.add("1", to: first)
        var options = DownloadOptions(segments: 9, headers: [.accept: "image/*", .cookie: "s=secret"])
        options.checksum = .md5("d41d8cd98f00b204e9800998ecf8427e")
        let id = try await scene.add("2", to: first, options: options)
        try await scene.add("3", to: first, priority: .high)
        try await scene.add("4", to: first)
        try await first.resume(id, from: "https://user:secret@b.example/2?sig=2")
        await first.pauseAll()
        await first.close()
        #expect(try scene.contents("2.item").firstRange(of: Array("secret".utf8)) == nil)
        let second = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        try await second.resume(DownloadID(4))
        await scene.downloads.run("4")
        await second.resumeAll()
        scene.downloads.endAll(.finish)
        let words = await second.events(until: "all finished")
        #expect(words.filter { $0.hasPrefix("began") } == ["began 4", "began 3", "began 1", "began 2"])
        let plan = try #require(scene.downloads.record("2").plans.first)
        #expect(plan.options.segments == 9 && plan.options.checksum == options.checksum)
        #expect(plan.options.headers == [.accept: "image/*"])
        #expect(plan.url.absoluteString == "https://a.example/2" && plan.target == .file("/data/2"))
        #expect(scene.downloads.record("2").moves == ["https://b.example/2?sig=2"])
        await second.close()
    }

    @Test("The final file name in a directory is restored")
    func names() async throws {
        let first = try await scene.manager()
        let id = try await first.add("https://a.example/x", to: .directory("/data"))
        await scene.downloads.run("x")
        await first.close()
        let second = try await scene.manager()
        await scene.downloads.run("x")
        #expect(scene.downloads.record("x").plans.map(\.target) == [.directory("/data"), .file("/data/x")])
        await second.cancel(id)
        await second.close()
    }

    @Test("Numbers are never reused, even after all downloads were removed")
    func numbers() async throws {
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first)
        await first.cancel(id)
        await first.close()
        let second = try await scene.manager()
        #expect(try await scene.add("1", to: second) == DownloadID(2))
        await second.close()
    }

    @Test("A relative path is resolved in the working directory of the process that added the download")
    func relative() async throws {
        let manager = try await scene.manager()
        try await manager.add("https://a.example/x", to: "some/file")
        await scene.downloads.run("x")
        let directory = try WorkingDirectory.path()
        #expect(scene.downloads.record("x").plans.first?.target == .file(FilePath("\(directory)/some/file")))
        let id = try await manager.add("https://a.example/y", to: .directory("."))
        #expect(manager.download(id)?.target == .directory(FilePath(directory)))
        try await manager.add("https://a.example/z", to: "././z")
        await scene.downloads.run("x", "y")
        await manager.close()
        let next = try await scene.manager()
        let downloads = next.all
        #expect(downloads.map(\.url.path) == ["/x", "/y", "/z"])
        #expect(
            downloads.map { $0.path?.string } == ["\(directory)/some/file", "\(directory)/y", "\(directory)/z"])
        await next.close()
    }

    @Test("A directory has one manager at a time")
    func exclusive() async throws {
        let first = try await scene.manager()
        let error = await #expect(throws: HTTPError.self) { try await scene.manager() }
        #expect(error?.code == .alreadyInProgress)
        await first.close()
        await first.close()
        await (try await scene.manager()).close()
    }

    @Test("Releasing the manager stops its downloads and frees the directory")
    func releaseReplacedBody() async throws {
        var manager: DownloadManager? = try await scene.manager()
        let id = try await scene.add("1", to: #require(manager))
        await scene.downloads.run("1")
        let states = try #require(manager?.states(of: id))
        let events = try #require(manager?.events)
        manager = nil
        var last = ""
        for await state in states { last = state.word }
        #expect(last == "waiting")
        for await _ in events {}
        await scene.downloads.run()
        let next = try await scene.nextManager()
        await scene.downloads.run("1")
        await next.close()
    }

    @Test("A handle retains its manager")
    func handles() async throws {
        var manager: DownloadManager? = try await scene.manager()
        let id = try await scene.add("1", to: #require(manager))
        let download = try #require(manager?.download(id))
        manager = nil
        await scene.downloads.run("1")
        scene.downloads.end("1", .finish)
        _ = try await download.value
    }

    @Test("Calls on a closed manager have no effect or throw")
    func closed() async throws {
        let manager = try await scene.manager()
        let id = try await scene.add("1", to: manager)
        let download = try #require(manager.download(id))
        await scene.downloads.run("1")
        await manager.close()
        #expect(download.state.word == "waiting")
        await #expect(throws: CancellationError.self) { try await download.value }
        await download.pause()
        await download.cancel()
        await manager.pauseAll()
        await manager.resumeAll()
        await manager.setLimits(DownloadLimits(concurrentFiles: 9))
        await #expect(throws: HTTPError.self) { try await manager.setPriority(.high, of: id) }
        await #expect(throws: HTTPError.self) { try await download.resume() }
        await #expect(throws: HTTPError.self) { try await manager.remove(id) }
        let next = try await scene.manager()
        await scene.downloads.run("1")
        await next.close()
    }
}
