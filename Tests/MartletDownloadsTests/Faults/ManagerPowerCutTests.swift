import Martlet
import MartletDownloads
import MartletStorage
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

/// Managers whose machine loses power.
@Suite("A directory of downloads after a power cut", .timeLimit(.minutes(10)))
struct ManagerPowerCutTests {
    /// A promised state of a download, and the number of changes on the disk before it.
    private struct Promise {
        var count: Int
        var id: DownloadID
        /// The promised state in one word; `nil` for a removed download.
        var word: String?
    }

    private static func cuts(_ count: Int) -> [PowerLoss] {
        (0...count).flatMap { number in
            [.after(number)] + (0..<4).map { .unsynced(number, seed: $0 &+ 41) }
        }
    }

    /// Makes a directory as a power cut leaves it.
    private func directory(_ cut: PowerLoss, of changes: [RecordingFileSystem.Change]) throws -> QueueScene {
        let scene = QueueScene()
        try LinuxFileSystem().makeDirectory(scene.path)
        for (name, bytes) in cut.files(after: changes) { try scene.write(bytes, to: name) }
        return scene
    }

    @Test("Every state that a manager reported survives a power cut, and no file is partial")
    func promises() async throws {
        let files = RecordingFileSystem()
        let scene = QueueScene()
        let manager = try await scene.manager(DownloadLimits(concurrentFiles: 1), files: files)
        var promises: [Promise] = []
        var ids: [DownloadID] = []
        func promise(_ id: DownloadID, _ word: String?) {
            promises.append(Promise(count: files.changes.count, id: id, word: word))
        }
        for number in 1...5 {
            ids.append(try await scene.add("\(number)", to: manager))
            promise(ids[number - 1], "there")
        }
        scene.downloads.end("1", .finish)
        await manager.reach(ids[0], "finished")
        promise(ids[0], "finished")
        scene.downloads.end("2", .fail(.checksumMismatch))
        await manager.reach(ids[1], "failed checksumMismatch")
        await manager.pause(ids[2])
        promise(ids[2], "paused")
        await manager.cancel(ids[3])
        promise(ids[3], nil)
        try await manager.setPriority(.high, of: ids[4])
        try await manager.remove(ids[0])
        promise(ids[0], nil)
        await manager.close()
        promise(ids[1], "failed checksumMismatch")
        let changes = files.changes
        try #require(changes.count > 40)
        for cut in ManagerPowerCutTests.cuts(changes.count) {
            try await check(cut, changes, promises, last: ids[4])
            await Task.yield()
        }
    }

    private func check(
        _ cut: PowerLoss, _ changes: [RecordingFileSystem.Change], _ promises: [Promise], last: DownloadID
    ) async throws {
        let count: Int =
            switch cut {
            case .after(let count), .unsynced(let count, _): count
            case .withoutData, .zeros, .any: 0
            }
        let found = try directory(cut, of: changes)
        let manager = try await found.manager()
        let known = promises.filter { $0.count <= count }
        // The last promise about a download counts, unless another change was in progress.
        let isWhole = count == changes.count
        for id in Set(known.map(\.id)) {
            guard let promise = known.last(where: { $0.id == id }) else { continue }
            let isLast = isWhole || !promises.contains { $0.id == id && $0.count > count }
            let word = manager.word(id)
            switch promise.word {
            case nil: #expect(word == "unknown", "\(cut): \(id) is \(word)")
            case "there"?: #expect(word != "unknown" || !isLast || id != last, "\(cut): \(id) is \(word)")
            case let expected?: if isLast { #expect(word == expected, "\(cut): \(id) is \(word)") }
            }
        }
        for event in manager.pastEvents {
            switch event {
            case .itemQuarantined, .itemSkipped: Issue.record("\(cut): \(event.words)")
            default: continue
            }
        }
        // No assigned number is assigned again.
        let next = try await found.add("next", to: manager)
        for promise in known { #expect(next > promise.id, "\(cut)") }
        await manager.close()
    }

    @Test("The file of a managed download is complete or absent after a power cut, and can be completed")
    func files() async throws {
        // Fewer bytes give fewer points.
        let version = RangeVersion(150_000, entityTag: "\"power\"")
        let conduct = RangeBehavior(version).with { $0.pace = RangePace(1_500_000) }
        try await RangeScene.with(conduct) { scene in
            let files = RecordingFileSystem()
            let recorded = QueueScene()
            let options = RangeScene.options { $0.collision = .overwrite }
            // The file is in the manager's directory, so that each sync there is recorded.
            let manager = try await manager(scene, recorded, files)
            let id = try await manager.add(
                scene.url, to: .file(recorded.directory.appending(RangeScene.name)), options: options)
            await manager.reach(id, "finished")
            await manager.close()
            let changes = files.changes
            // An existing file would be recognized: a power cut leaves one as it is.
            try LinuxFileSystem().remove("\(recorded.path)/\(RangeScene.name)")
            scene.ranges.play(RangeBehavior(version))
            var cuts = (0...changes.count).map { PowerLoss.after($0) }
            cuts += (0...changes.count).map { .unsynced($0, seed: UInt64($0)) }
            for cut in cuts { try await goOn(scene, version, cut, changes) }
        }
    }

    private func manager(
        _ scene: RangeScene, _ place: QueueScene, _ files: any FileSystem
    ) async throws -> DownloadManager {
        let session = scene.session
        return try await DownloadManager(
            session: session, directory: place.directory, files: files,
            make: { plan, status, slots in
                // The item contains the path of the recorded directory.
                var plan = plan
                plan.target = .file(place.directory.appending(RangeScene.name))
                return DownloadJob(plan, session: session, slots: slots, status: status, files: files)
            })
    }

    private func goOn(
        _ scene: RangeScene, _ version: RangeVersion, _ cut: PowerLoss,
        _ changes: [RecordingFileSystem.Change]
    ) async throws {
        let found = try directory(cut, of: changes)
        let name = RangeScene.name
        if try found.names.contains(name) {
            let bytes = try found.contents(name)
            #expect(bytes == version.contents, "\(cut): \(bytes.count) bytes have the name")
        }
        let manager = try await manager(scene, found, LinuxFileSystem())
        _ = try await manager.allFinished
        guard let id = manager.ids.first else {
            await manager.close()
            return
        }
        #expect(manager.word(id) == "finished", "\(cut)")
        #expect(try found.contents(name) == version.contents, "\(cut)")
        #expect(try found.names.filter { $0 != name } == ["\(id).item"], "\(cut)")
        await manager.close()
    }
}
