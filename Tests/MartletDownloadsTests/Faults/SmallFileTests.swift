import MartletURL
import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

@testable import MartletDownloads

/// Files that are written and published in one operation.
@Suite("Small files, which are published immediately")
struct SmallFileTests {
    private func job(
        _ scene: RangeScene, _ files: FaultyFileSystem, _ options: DownloadOptions
    ) throws -> DownloadJob {
        DownloadJob(
            DownloadJob.Plan(url: try HTTPURL(scene.url), target: .file(scene.path), options: options),
            session: scene.session, status: DownloadStatus(), files: files)
    }

    @Test(
        "A download that is cancelled while its file is published is complete or can be resumed")
    func cancelled() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let files = FaultyFileSystem()
            let job = try job(scene, files, RangeScene.options)
            let task = Task { try await job.run() }
            files.interrupt(.rename, at: scene.path.string) { task.cancel() }
            let result = try await task.value
            #expect(result.path == scene.path && result.byteCount == Samples.one.byteCount)
            #expect(try scene.directory.names() == [RangeScene.name])
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    @Test("A name that is taken at the last moment is rejected, and the bytes stay synced and recorded")
    func takenName() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let files = FaultyFileSystem()
            let job = try job(scene, files, RangeScene.options)
            files.interrupt(.rename, at: scene.path.string) {
                _ = try? LinuxFileSystem().open(scene.path.string, for: .creating)
            }
            await #expect {
                try await job.run()
            } throws: { error in
                (error as? HTTPError)?.code == .fileExists
                    && (error as? HTTPError)?.resumableByteCount == Samples.one.byteCount
            }
            try LinuxFileSystem().remove(scene.path.string)
            let count = scene.ranges.requests.count
            let result = try await job.run()
            #expect(result.resumedByteCount == Samples.one.byteCount)
            #expect(scene.ranges.requests.count == count, "asked again")
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    /// A file whose request is made in the task of the run.
    private static let tiny = RangeVersion(10_000, entityTag: "\"tiny\"")

    @Test("A tiny file is complete after a broken response, with and without syncs", arguments: [false, true])
    func brokenOnce(isSynced: Bool) async throws {
        let conduct = RangeBehavior(SmallFileTests.tiny, acts: [.cut(request: 1, after: 4_000)])
        try await RangeScene.with(conduct) { scene in
            let run = try await scene.run(RangeScene.options { $0.durability = isSynced ? .synced : .unsynced })
            #expect(run.value?.byteCount == 10_000)
            #expect(run.requests.count == 2)
            try await scene.expectOrder(after: run, versions: [SmallFileTests.tiny])
        }
    }

    @Test("A tiny file without syncs makes none, and one with syncs makes two", arguments: [false, true])
    func syncs(isSynced: Bool) async throws {
        try await RangeScene.with(RangeBehavior(SmallFileTests.tiny)) { scene in
            let files = FaultyFileSystem()
            let options = RangeScene.options { $0.durability = isSynced ? .synced : .unsynced }
            _ = try await job(scene, files, options).run()
            #expect(files.count(of: .sync) == (isSynced ? 2 : 0))
            #expect(try scene.directory.version(of: RangeScene.name, among: [SmallFileTests.tiny]) == 0)
        }
    }

    @Test("A tiny file that is paused in the middle of its body is resumed")
    func paused() async throws {
        let conduct = RangeBehavior(SmallFileTests.tiny, acts: [.hold(request: 1, after: 4_000, "middle")])
        try await RangeScene.with(conduct) { scene in
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            try await scene.ranges.signals.wait(for: "middle")
            // The clock publishes the progress although the run's own task waits for the body.
            for await progress in download.progress where progress.stalled > .zero { break }
            await download.pause()
            #expect(download.state == .paused)
            #expect(scene.directory.openFiles().isEmpty)
            try await download.resume()
            let result = try await download.value
            #expect(result.byteCount == 10_000 && result.resumedByteCount <= 4_000)
            #expect(try scene.directory.version(of: RangeScene.name, among: [SmallFileTests.tiny]) == 0)
        }
    }

    @Test("A small file with a known checksum is verified before it is published")
    func verifiedFirst() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let files = FaultyFileSystem()
            let other = RangeVersion(10, entityTag: "\"other\"")
            let options = try RangeScene.options { $0.checksum = try Samples.sha256(other) }
            let job = try job(scene, files, options)
            await #expect {
                try await job.run()
            } throws: { ($0 as? HTTPError)?.code == .checksumMismatch }
            #expect(try !scene.directory.names().contains(RangeScene.name))
        }
    }
}
