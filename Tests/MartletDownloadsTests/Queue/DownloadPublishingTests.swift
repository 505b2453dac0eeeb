import MartletURL
import Foundation
import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

/// Published files of downloads whose end was not recorded.
@Suite("Downloads whose file is already published", .timeLimit(.minutes(10)))
struct DownloadPublishingTests {
    /// A manager whose downloads write to a file system that may fail.
    private func manager(_ scene: RangeScene, _ files: FaultyFileSystem) async throws -> DownloadManager {
        let session = scene.session
        return try await DownloadManager(
            session: session, directory: FilePath(scene.directory.path).appending("queue"),
            make: { plan, status, slots in
                DownloadJob(plan, session: session, slots: slots, status: status, files: files)
            })
    }

    /// Makes the sync of the directory after publication fail.
    private func failSync(_ files: FaultyFileSystem, of path: FilePath, times: Int = 1) {
        files.interrupt(.rename, at: path.string) {
            files.fail(FaultyFileSystem.Fault(.sync, times: times, code: EIO))
        }
    }

    @Test("A publication that a manager recorded before its process ended is given to the next run")
    func handedOver() async throws {
        let scene = QueueScene()
        let files = FaultyFileSystem()
        let first = try await scene.manager(files: files)
        // The download is added and the publication recorded; its end is not written any more.
        files.fail(FaultyFileSystem.Fault(.create, path: "1.item.new", after: 2, code: EIO))
        let id = try await scene.add("1", to: first)
        scene.downloads.end("1", .finish)
        await first.reach(id, "finished")
        await first.close()
        #expect(try scene.names == ["1.item"])
        let second = try await scene.manager()
        await second.reach(id, "finished")
        #expect(scene.downloads.record("1").runs == 1)
        let publication = try #require(scene.downloads.record("1").publications.first)
        #expect(publication.result.path == "/data/1" && publication.result.byteCount == 100)
        #expect(publication.part == FileIdentity(number: 7, device: 1, modificationTime: -5))
        await second.close()
        let third = try await scene.manager()
        _ = try await third.allFinished
        #expect(third.word(id) == "finished")
        #expect(scene.downloads.record("1").publications.count == 1)
        await third.close()
    }

    @Test("A publication record that cannot be written is reported, and the file is published anyway")
    func unnoted() async throws {
        let scene = QueueScene()
        let files = FaultyFileSystem()
        let manager = try await scene.manager(files: files)
        files.fail(FaultyFileSystem.Fault(.create, path: "1.item.new", after: 1, times: 1, code: ENOSPC))
        let id = try await scene.add("1", to: manager)
        scene.downloads.end("1", .finish)
        let words = await manager.events(until: "all finished")
        #expect(words.contains("file failed \(id) diskFull") && words.contains("finished \(id)"))
        await manager.close()
    }

    @Test(
        "A file in a directory that cannot be synced is complete and reported, and is not fetched again",
        arguments: [DownloadOptions.Collision.fail, .overwrite, .rename])
    func unsynced(_ collision: DownloadOptions.Collision) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let files = FaultyFileSystem()
            let first = try await manager(scene, files)
            failSync(files, of: scene.path, times: 2)
            let options = RangeScene.options { $0.collision = collision }
            let id = try await first.add(scene.url, to: .file(scene.path), options: options)
            await first.reach(id, "failed fileFailed")
            guard case .failed(let error) = first.download(id)?.state else {
                Issue.record("\(first.word(id))")
                return
            }
            #expect(error.message.contains("the file is complete"))
            #expect(error.unpublishedFile == scene.path && error.resumableByteCount == Samples.one.byteCount)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            // The sync fails again in this process, and works in the next one.
            try await first.resume(id)
            let words = await first.events(until: "all finished")
            #expect(words.last == "all finished")
            await first.reach(id, "failed fileFailed")
            await first.close()
            let second = try await manager(scene, files)
            #expect(second.word(id) == "failed fileFailed")
            let count = scene.ranges.requests.count
            try await second.resume(id)
            let result = try await #require(second.download(id)).value
            #expect(result.path == scene.path && result.byteCount == Samples.one.byteCount)
            #expect(result.resumedByteCount == Samples.one.byteCount && result.receivedByteCount == 0)
            #expect(scene.ranges.requests.count == count)
            #expect(try scene.directory.names() == [RangeScene.name, "queue"])
            await second.close()
        }
    }

    @Test("A download without a manager recognizes its published file when it is resumed")
    func sole() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let files = FaultyFileSystem()
            failSync(files, of: scene.path)
            let job = DownloadJob(
                DownloadJob.Plan(
                    url: try HTTPURL(scene.url), target: .file(scene.path), options: RangeScene.options),
                session: scene.session, status: DownloadStatus(), files: files)
            let error = await #expect(throws: HTTPError.self) { try await job.run() }
            #expect(error?.code == .fileFailed && error?.unpublishedFile == scene.path)
            #expect(try scene.directory.names().contains(RangeScene.name))
            let count = scene.ranges.requests.count
            let result = try await job.run()
            #expect(result.path == scene.path && result.receivedByteCount == 0)
            #expect(scene.ranges.requests.count == count)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("Cancelling a failed download keeps its published file and removes the other files")
    func cancelled() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let files = FaultyFileSystem()
            let manager = try await manager(scene, files)
            failSync(files, of: scene.path)
            let id = try await manager.add(scene.url, to: .file(scene.path), options: RangeScene.options)
            await manager.reach(id, "failed fileFailed")
            await manager.cancel(id)
            #expect(try scene.directory.names() == [RangeScene.name, "queue"])
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            await manager.close()
        }
    }

    @Test("A publication that was recorded but not made is discarded, and the download resumes")
    func rejected() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let manager = try await manager(scene, FaultyFileSystem())
            let files = FaultyFileSystem()
            let first = try await DownloadManager(
                session: scene.session, directory: FilePath(scene.directory.path).appending("other"),
                make: { plan, status, slots in
                    DownloadJob(plan, session: scene.session, slots: slots, status: status, files: files)
                })
            await manager.close()
            // Another process takes the name at the last moment.
            files.interrupt(.rename, at: scene.path.string) {
                _ = FileManager.default.createFile(atPath: scene.path.string, contents: Data([1, 2]))
            }
            let id = try await first.add(scene.url, to: .file(scene.path), options: RangeScene.options)
            await first.reach(id, "failed fileExists")
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2])
            try FileManager.default.removeItem(atPath: scene.path.string)
            scene.ranges.play(RangeBehavior(Samples.two))
            try await first.resume(id)
            let result = try await #require(first.download(id)).value
            #expect(result.byteCount == Samples.two.byteCount || result.byteCount == Samples.one.byteCount)
            let versions = [Samples.one, Samples.two]
            #expect(try scene.directory.version(of: RangeScene.name, among: versions) != nil)
            await first.close()
        }
    }
}
