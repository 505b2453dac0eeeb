import Martlet
import MartletDownloads
import MartletStorage
import MartletTestSupport
import MartletTesting
import MartletTransport
import Synchronization
import Testing

@Suite("Download manager", .timeLimit(.minutes(10)))
struct DownloadManagerTests {
    private let scene = QueueScene()

    @Test("Three files run concurrently, two of them from one host, and the next when one is done")
    func limits() async throws {
        let manager = try await scene.manager()
        for name in ["1", "2", "3", "4"] { try await scene.add(name, to: manager) }
        try await scene.add("5", to: manager, host: "b.example")
        await scene.downloads.run("1", "2", "5")
        scene.downloads.end("1", .finish)
        await scene.downloads.run("2", "3", "5")
        scene.downloads.endAll(.finish)
        _ = try await manager.allFinished
        #expect(scene.downloads.most == (3, 2))
        await manager.close()
    }

    @Test("Events arrive in order, and late subscribers get the earlier ones")
    func events() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        let first = try await scene.add("1", to: manager)
        let second = try await scene.add("2", to: manager)
        await scene.downloads.run("1")
        scene.downloads.end("1", .fail(.diskFull))
        await scene.downloads.run("2")
        scene.downloads.end("2", .finish)
        #expect(
            await manager.events(until: "all finished") == [
                "added 1", "began 1", "added 2", "failed 1 diskFull", "began 2", "finished 2", "all finished",
            ])
        #expect(manager.word(first) == "failed diskFull" && manager.word(second) == "finished")
        #expect(manager.ids == [first, second])
        await manager.close()
    }

    @Test(
        "Waiting for all includes paused downloads, and completion is reported once each time"
    )
    func allFinished() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 9, perHost: 9))
        _ = try await manager.allFinished
        let ids = [
            try await scene.add("1", to: manager), try await scene.add("2", to: manager),
            try await scene.add("3", to: manager),
        ]
        let waiting = Task { try await manager.allFinished }
        await manager.pause(ids[1])
        scene.downloads.end("1", .finish)
        await manager.reach(ids[0], "finished")
        await manager.cancel(ids[2])
        #expect(manager.word(ids[1]) == "paused")
        try await manager.resume(ids[1])
        scene.downloads.end("2", .fail(.connectionLost))
        _ = try await waiting.value
        #expect(manager.word(ids[1]) == "failed connectionLost")
        try await manager.resume(ids[1])
        scene.downloads.end("2", .finish)
        _ = try await manager.allFinished
        await manager.close()
        var count = 0
        for await event in manager.events where event.words == "all finished" { count += 1 }
        #expect(count == 2)
    }

    @Test("Waiting for all ends when the waiting task is cancelled, or the manager is closed")
    func waitingEnds() async throws {
        let manager = try await scene.manager()
        try await scene.add("1", to: manager)
        let cancelled = Task { try await manager.allFinished }
        let closed = Task { try await manager.allFinished }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        await manager.close()
        await #expect(throws: CancellationError.self) { try await closed.value }
    }

    @Test("A pause returns when the run has ended, and resuming reuses the stored bytes")
    func pausing() async throws {
        let manager = try await scene.manager()
        let id = try await scene.add("1", to: manager)
        let download = try #require(manager.download(id))
        await scene.downloads.run("1")
        await download.pause()
        #expect(!scene.downloads.record("1").isRunning)
        #expect(download.state == .paused)
        await manager.pause(id)
        try await download.resume()
        try await download.resume()
        await scene.downloads.run("1")
        scene.downloads.end("1", .finish)
        let result = try await download.value
        #expect(result.resumedByteCount == 10 && scene.downloads.record("1").runs == 2)
        var words: [String] = []
        for await event in download.events { words.append("\(event)".prefix { $0 != "(" }.description) }
        #expect(words == ["started", "paused", "started", "finished"])
        await manager.close()
    }

    @Test("Two states are equal if they have the same result, or errors with the same code")
    func stateEquality() throws {
        func finished(_ byteCount: UInt64) throws -> DownloadState {
            let url = try HTTPURL("http://a.example/1")
            return .finished(
                DownloadResult(path: "/data/1", byteCount: byteCount, receivedByteCount: byteCount, url: url))
        }
        func failed(_ code: HTTPError.Code, _ message: String) -> DownloadState {
            .failed(HTTPError(code, phase: .receivingBody, message: message))
        }
        let states: [DownloadState] = [
            .waiting, .running, .verifying, .paused, try finished(1), try finished(2), failed(.diskFull, "a"),
            failed(.timedOut, "a"), .cancelled,
        ]
        for (index, state) in states.enumerated() { #expect(states.firstIndex(of: state) == index) }
        #expect(failed(.diskFull, "a") == failed(.diskFull, "b"))
    }

    @Test("Waiting downloads are paused without a run; all can be paused and resumed together")
    func pausingAll() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        let ids = [
            try await scene.add("1", to: manager), try await scene.add("2", to: manager),
            try await scene.add("3", to: manager),
        ]
        await scene.downloads.run("1")
        await manager.pauseAll()
        #expect(ids.map { manager.word($0) } == ["paused", "paused", "paused"])
        #expect(scene.downloads.record("2").runs == 0 && scene.downloads.record("3").runs == 0)
        await manager.resumeAll()
        scene.downloads.endAll(.finish)
        _ = try await manager.allFinished
        await manager.close()
    }

    @Test("A cancelled download is stopped and removed; a complete file stays")
    func cancelling() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        let running = try await scene.add("1", to: manager)
        let waiting = try await scene.add("2", to: manager)
        let done = try await scene.add("3", to: manager)
        let handle = try #require(manager.download(running))
        await scene.downloads.run("1")
        await manager.cancel(waiting)
        await handle.cancel()
        #expect(scene.downloads.record("1").discards == 1 && scene.downloads.record("2").runs == 0)
        #expect(handle.state.word == "cancelled")
        await #expect(throws: CancellationError.self) { try await handle.value }
        scene.downloads.end("3", .finish)
        _ = try await manager.allFinished
        await manager.cancel(done)
        await manager.cancel(DownloadID(99))
        #expect(manager.ids == [done] && manager.word(done) == "finished")
        #expect(scene.downloads.record("3").discards == 0)
        #expect(try scene.names == ["3.item"])
        await #expect(throws: HTTPError.self) { try await handle.resume() }
        // The name of its file is free again.
        try await scene.add("1", to: manager)
        await manager.close()
    }

    @Test("A failed download stays failed until it is resumed, even with a new URL; the others run")
    func failing() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        let id = try await scene.add("1", to: manager)
        let other = try await scene.add("2", to: manager)
        let handle = try #require(manager.download(id))
        await scene.downloads.run("1")
        scene.downloads.end("1", .fail(.unacceptableStatus))
        await #expect(throws: HTTPError.self) { try await handle.value }
        await scene.downloads.run("2")
        try await manager.resume(id, from: "https://b.example/1?sig=new")
        scene.downloads.endAll(.finish)
        _ = try await manager.allFinished
        #expect(manager.word(id) == "finished" && manager.word(other) == "finished")
        #expect(scene.downloads.record("1").moves == ["https://b.example/1?sig=new"])
        await #expect(throws: HTTPError.self) { try await manager.resume(id) }
        await #expect(throws: HTTPError.self) { try await manager.resume(DownloadID(99)) }
        await #expect(throws: HTTPError.self) { try await manager.resume(id, from: "no URL") }
        await manager.close()
    }

    @Test("Only finished downloads can be forgotten")
    func removing() async throws {
        let manager = try await scene.manager()
        let id = try await scene.add("1", to: manager)
        await #expect(throws: HTTPError.self) { try await manager.remove(id) }
        scene.downloads.end("1", .finish)
        await manager.reach(id, "finished")
        _ = try await manager.allFinished
        try await manager.remove(id)
        #expect(manager.ids.isEmpty && manager.download(id) == nil)
        #expect(try scene.names.isEmpty)
        await #expect(throws: HTTPError.self) { try await manager.remove(id) }
        #expect(try await scene.add("1", to: manager) == DownloadID(2))
        await manager.close()
    }

    @Test("A download with a raised priority runs before the waiting ones")
    func priorities() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        try await scene.add("1", to: manager)
        try await scene.add("2", to: manager)
        let last = try await scene.add("3", to: manager, priority: .low)
        await scene.downloads.run("1")
        try await manager.download(last)?.setPriority(.high)
        scene.downloads.end("1", .finish)
        await scene.downloads.run("3")
        await manager.close()
    }

    @Test("Raised limits start more downloads immediately; lowered ones stop none")
    func changedLimits() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 1))
        for name in ["1", "2", "3"] { try await scene.add(name, to: manager, host: "h\(name).example") }
        await manager.setLimits(DownloadLimits(concurrentFiles: 2))
        await scene.downloads.run("1", "2")
        await manager.setLimits(DownloadLimits(concurrentFiles: 1))
        scene.downloads.end("1", .finish)
        await scene.downloads.run("2")
        scene.downloads.end("2", .finish)
        await scene.downloads.run("3")
        await manager.close()
    }

    @Test("A rate for one download applies to its current run and to later ones")
    func bandwidth() async throws {
        let manager = try await scene.manager()
        let id = try await scene.add("1", to: manager)
        await scene.downloads.run("1")
        try await manager.setBandwidth(.bytesPerSecond(500), of: id)
        #expect(scene.downloads.record("1").bandwidths == [500])
        await manager.pause(id)
        try await manager.resume(id)
        await scene.downloads.run("1")
        #expect(scene.downloads.record("1").plans.last?.options.bandwidth == .bytesPerSecond(500))
        await manager.close()
    }

    @Test("The closure adds the secrets for each run, and knows the URL of the run")
    func preparing() async throws {
        let count = Shared(0)
        let manager = try await scene.manager { fields, url in
            let number = count.withLock { count in
                count += 1
                return count
            }
            fields[.authorization] = "Bearer \(number) for \(url.host)"
        }
        let id = try await scene.add("1", to: manager)
        await scene.downloads.run("1")
        await manager.pause(id)
        try await manager.resume(id, from: "https://b.example/1")
        await scene.downloads.run("1")
        #expect(
            scene.downloads.record("1").plans.map { $0.options.headers[.authorization] } == [
                "Bearer 1 for a.example", "Bearer 2 for b.example",
            ])
        #expect(try scene.contents("1.item").firstRange(of: Array("Bearer".utf8)) == nil)
        await manager.close()
    }

    @Test("The fields that the closure adds do not follow a redirect to another origin")
    func preparedRedirect() async throws {
        let name = try #require(HTTPField.Name("X-Api-Key"))
        let seen = Shared<[String?]>([])
        try await TestOrigin.withOrigin(.plain) { request in
            seen.withLock { $0.append(request.headers["X-Api-Key"]) }
            return .text("file")
        } run: { other async throws in
            let target = other.url("/file")
            try await TestOrigin.withOrigin(.plain) { request in
                seen.withLock { $0.append(request.headers["X-Api-Key"]) }
                return .redirect(to: target)
            } run: { origin async throws in
                let target = FilePath("\(scene.path).file")
                defer { try? LinuxFileSystem().remove(target.string) }
                let manager = try await DownloadManager(session: HTTPSession.own(origin), directory: scene.directory) {
                    $0[name] = "secret"
                    _ = $1
                }
                let id = try await manager.add(origin.url("/"), to: target)
                _ = try await manager.download(id)?.value
                await manager.close()
            }
        }
        #expect(seen.withLock { $0 } == ["secret", nil])
    }

    @Test("A closure that throws fails the download, and its error is not stored on disk")
    func preparingFails() async throws {
        struct Denied: Error { var secret = "hunter2" }
        let manager = try await scene.manager { _, _ in throw Denied() }
        let id = try await scene.add("1", to: manager)
        _ = try await manager.allFinished
        guard case .failed(let error) = manager.download(id)?.state else {
            Issue.record("\(manager.word(id))")
            return
        }
        #expect(error.underlying is Denied && error.message.contains("Denied"))
        #expect(!error.message.contains("hunter2"))
        await manager.close()
        #expect(try scene.contents("1.item").firstRange(of: Array("hunter2".utf8)) == nil)
    }

    @Test("Two downloads of one file are rejected, unless the first is finished")
    func sameTarget() async throws {
        let manager = try await scene.manager()
        let id = try await manager.add("https://a.example/1", to: "/data/f")
        let error = await #expect(throws: HTTPError.self) {
            try await manager.add("https://b.example/2", to: "/data/./x/../f")
        }
        #expect(error?.code == .alreadyInProgress)
        await manager.cancel(id)
        try await manager.add("https://b.example/2", to: "/data/f")
        await manager.close()
    }

    @Test("An invalid download is rejected and leaves no files")
    func rejected() async throws {
        let manager = try await scene.manager()
        await #expect(throws: HTTPError.self) { try await manager.add("ftp://a.example/1", to: "/data/f") }
        var options = DownloadOptions()
        options.request.proxy = .selector { _ in nil }
        await #expect(throws: HTTPError.self) {
            try await manager.add("https://a.example/1", to: "/data/f", options: options)
        }
        let gate = CurrentValue(false)
        let cancelled = Task {
            _ = await gate.next(after: 1)
            return try await manager.add("https://a.example/1", to: "/data/f")
        }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(manager.ids.isEmpty)
        #expect(try scene.names.isEmpty)
        _ = try await manager.allFinished
        await manager.close()
        let closed = await #expect(throws: HTTPError.self) { try await scene.add("1", to: manager) }
        #expect(closed?.code == .downloadManagerClosed)
    }

    @Test("The state sequence of an unknown download reports that it is gone")
    func unknown() async throws {
        let manager = try await scene.manager()
        var words: [String] = []
        for await state in manager.states(of: DownloadID(5)) { words.append(state.word) }
        #expect(words == ["cancelled"])
        #expect(manager.download(DownloadID(5)) == nil)
        await manager.close()
    }

    @Test("A run that stops by itself has failed, and is not restarted again and again")
    func selfStopping() async throws {
        let manager = try await scene.manager { _, _ in throw CancellationError() }
        let id = try await scene.add("1", to: manager)
        _ = try await manager.allFinished
        #expect(manager.word(id) == "failed systemFailed")
        await manager.close()
    }

    @Test(
        "The manager's bandwidth limits apply to its session until they are removed"
    )
    func sessionBandwidth() async throws {
        let manager = try await scene.manager(DownloadLimits(bandwidth: .bytesPerSecond(1000)))
        #expect(scene.session.core.bandwidth.isActive(.down))
        await manager.setLimits(DownloadLimits())
        #expect(!scene.session.core.bandwidth.isActive(.down))
        await manager.setLimits(DownloadLimits(bandwidthPerHost: .bytesPerSecond(1000)))
        #expect(scene.session.core.bandwidth.isActive(.down))
        await manager.close()
    }
}
