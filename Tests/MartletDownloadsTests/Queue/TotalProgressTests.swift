import Martlet
import MartletDownloads
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletDownloads

@Suite("Total progress of all downloads")
struct TotalProgressTests {
    private let scene = QueueScene()

    @Test("The first value comes immediately, and the sequence ends with the manager")
    func ends() async throws {
        let manager = try await scene.manager()
        var values = manager.progress.makeAsyncIterator()
        #expect(await values.next() == TotalDownloadProgress())
        #expect(manager.progress.current.fractionCompleted == nil)
        let rest = Task {
            var last: TotalDownloadProgress?
            for await value in manager.progress { last = value }
            return last
        }
        try await scene.add("1", to: manager)
        await scene.downloads.run("1")
        await manager.close()
        #expect(await rest.value?.waitingCount == 1)
    }

    @Test("Downloads are counted by their states, and their bytes are added up")
    func counts() async throws {
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 2))
        let ids = [
            try await scene.add("1", to: manager), try await scene.add("2", to: manager),
            try await scene.add("3", to: manager),
        ]
        await scene.downloads.run("1", "2")
        for await total in manager.progress where total.completedByteCount == 20 {
            #expect((total.runningCount, total.waitingCount, total.count) == (2, 1, 3))
            #expect(total.totalByteCount == nil && total.fractionCompleted == nil)
            break
        }
        scene.downloads.end("1", .finish)
        scene.downloads.end("2", .fail(.diskFull))
        await scene.downloads.run("3")
        for await total in manager.progress
        where total.totalByteCount == 300 && total.finishedCount == 1 && total.failedCount == 1 {
            #expect((total.finishedCount, total.runningCount, total.waitingCount) == (1, 1, 0))
            #expect(total.completedByteCount == 120 && total.fractionCompleted == 0.4)
            break
        }
        await manager.pause(ids[2])
        #expect(manager.progress.current.pausedCount == 1)
        await manager.cancel(ids[2])
        try await manager.remove(ids[1])
        let total = manager.progress.current
        #expect((total.count, total.finishedCount) == (1, 1))
        #expect(total.fractionCompleted == 1 && total.bytesPerSecond == 0)
        #expect("\(total)" == "100 of 100 bytes, 0 bytes/s, 1 of 1 finished")
        #expect("\(TotalDownloadProgress())" == "0 of ? bytes, 0 bytes/s, 0 of 0 finished")
        await manager.close()
    }

    @Test("Lengths that overflow the sum are subtracted exactly")
    func hugeLengths() {
        var progress = DownloadProgress()
        (progress.completedByteCount, progress.totalByteCount) = (.max, .max)
        progress.bytesPerSecond = .infinity
        let huge = TotalDownloadProgress.Part(progress, .running)
        (progress.completedByteCount, progress.totalByteCount, progress.bytesPerSecond) = (5, 10, 2)
        let small = TotalDownloadProgress.Part(progress, .running)
        var sums = TotalDownloadProgress.Sums()
        for part in [huge, huge, small] { sums.replace(nil, by: part) }
        #expect(sums.progress.totalByteCount == .max && sums.progress.fractionCompleted == 1)
        for part in [huge, huge] { sums.replace(part, by: nil) }
        #expect(sums.progress.completedByteCount == 5 && sums.progress.totalByteCount == 10)
        #expect(sums.progress.bytesPerSecond == 2 && sums.progress.runningCount == 1)
    }

    /// Records the delegate calls about downloads.
    private final class Notices: SessionDelegate {
        let finished = CurrentValue<[String]>([])
        let resumed = CurrentValue<[UInt64]>([])

        func backgroundFinished(in directory: FilePath) async {
            finished.change { $0.append(directory.string) }
        }

        func transferResumed(of url: HTTPURL, at offset: UInt64, expecting byteCount: UInt64?) async {
            resumed.change { $0 += [offset, byteCount ?? 0] }
        }
    }

    @Test("The delegate of the session is notified when all downloads of a directory are over")
    func backgroundFinished() async throws {
        let notices = Notices()
        let session = scene.session.with { $0.delegate = notices }
        let manager = try await DownloadManager(
            session: session, directory: scene.directory, make: scene.downloads.factory)
        try await scene.add("1", to: manager)
        #expect(notices.finished.value.isEmpty)
        scene.downloads.end("1", .finish)
        _ = await notices.finished.next { !$0.isEmpty }
        #expect(notices.finished.value == [scene.directory.string])
        await manager.close()
    }

    @Test("The delegate of the session is notified of the offset at which a download resumes")
    func resumed() async throws {
        let directory = try DownloadDirectory()
        let requests = Mutex(0)
        let content = OriginHandler.content(OriginContent(body: .pattern(300_000), entityTag: "\"one\""))
        try await TestOrigin.withOrigin { request in
            let number = requests.withLock { count in
                count += 1
                return count
            }
            return try await content.respond(to: request).with {
                if number == 1 { $0.fault = OriginFault(.close, afterBodyBytes: 100_000) }
            }
        } run: { origin async throws in
            let notices = Notices()
            let session = HTTPSession().with { $0.delegate = notices }
            var options = DownloadOptions(segments: 1)
            options.retry.maximumRetries = 0
            let target = directory.file("file")
            await #expect(throws: HTTPError.self) {
                try await session.download(origin.url("/"), to: target, options: options)
            }
            #expect(notices.resumed.value.isEmpty)
            // The closure of the progress is called on this actor, and need not be Sendable.
            var last = DownloadProgress()
            let result = try await session.download(origin.url("/"), to: target, options: options) {
                last = $0
            }
            #expect(last.completedByteCount == 300_000 && last.isFinished)
            #expect(await eventually(within: .seconds(300)) { !notices.resumed.value.isEmpty })
            #expect(notices.resumed.value == [result.resumedByteCount, 300_000])
            #expect(result.resumedByteCount > 0)
        }
    }
}
