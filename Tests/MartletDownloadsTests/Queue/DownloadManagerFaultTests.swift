import Foundation
import Glibc
import Martlet
import MartletStorage
import MartletTestSupport
import Testing

@testable import MartletDownloads

@Suite("Faults of a directory of downloads", .timeLimit(.minutes(10)))
struct DownloadManagerFaultTests {
    private let scene = QueueScene()

    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
    }

    @Test("The directory, its new parents and its files are private to their owner")
    func modes() async throws {
        let deep = FilePath(scene.path).appending("a/b")
        let manager = try await DownloadManager(
            session: scene.session, directory: deep, make: scene.downloads.factory)
        try await scene.add("1", to: manager)
        #expect(try mode(deep.string) == 0o700)
        #expect(try mode(deep.string + "/1.item") == 0o600)
        #expect(try mode(deep.string + "/lock") == 0o600)
        await manager.close()
    }

    @Test("A directory that others can write to is rejected, as is a file", arguments: [0o770, 0o707])
    func writable(_ mode: Int) async throws {
        try FileManager.default.createDirectory(atPath: scene.path, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: scene.path)
        let error = await #expect(throws: HTTPError.self) { try await scene.manager() }
        #expect(error?.code == .fileFailed && error?.message.contains("chmod 700") == true)
        try scene.write([], to: "file")
        let file = await #expect(throws: HTTPError.self) {
            try await DownloadManager(
                session: scene.session, directory: FilePath(scene.path + "/file"),
                make: scene.downloads.factory)
        }
        #expect(file?.code == .fileFailed)
    }

    @Test("On a full disk no download is partly added, and adding works again once there is space")
    func fullDisk() async throws {
        let files = FaultyFileSystem()
        let manager = try await scene.manager(files: files)
        try await scene.add("1", to: manager)
        let before = try scene.names
        for room in [0, 1, 100, 200] as [UInt64] {
            files.fill(after: room)
            let error = await #expect(throws: HTTPError.self) { try await scene.add("2", to: manager) }
            #expect(error?.code == .diskFull)
            files.mend()
            #expect(try scene.names == before)
            #expect(manager.ids == [DownloadID(1)])
        }
        try await scene.add("2", to: manager)
        await manager.close()
        let next = try await scene.manager()
        #expect(next.ids.count == 2)
        await next.close()
    }

    @Test(
        "A download is added or not when any call fails, in this process and in the next"
    )
    func failingCalls() async throws {
        for call in FaultyFileSystem.Call.allCases {
            for skipped in 0..<3 {
                let scene = QueueScene()
                let files = FaultyFileSystem()
                let manager = try await scene.manager(files: files)
                files.fail(.init(call, after: skipped, times: 1, code: EIO))
                let added = try? await scene.add("1", to: manager)
                files.mend()
                #expect(manager.ids.count == (added == nil ? 0 : 1))
                await manager.close()
                let next = try await scene.manager()
                #expect(next.ids.count == (added == nil ? 0 : 1), "\(call), \(skipped)")
                await next.close()
            }
        }
    }

    @Test("A pause that cannot be written is reported, and written at the end")
    func unsaved() async throws {
        let files = FaultyFileSystem()
        let manager = try await scene.manager(files: files)
        let id = try await scene.add("1", to: manager)
        await scene.downloads.run("1")
        files.fail(.init(.write, path: ".item", code: ENOSPC))
        await manager.pause(id)
        #expect(manager.word(id) == "paused")
        #expect(await manager.events(until: "file failed 1 diskFull").contains("began 1"))
        files.mend()
        await manager.close()
        let next = try await scene.manager()
        #expect(next.word(id) == "paused")
        await next.close()
    }

    @Test("After a kill at any call, reported changes are on disk, and no file is damaged")
    func kills() async throws {
        for calls in 0..<60 {
            let scene = QueueScene()
            let files = FaultyFileSystem()
            let manager = try await scene.manager(
                DownloadLimits(concurrentFiles: 9, perHost: 9), files: files)
            files.stop(after: calls)
            let first = try? await scene.add("1", to: manager)
            let second = try? await scene.add("2", to: manager)
            if let first { await manager.pause(first) }
            // Pauses do not throw: a failed write was reported.
            let isPaused = await !Self.told(manager, "file failed 1")
            if let second { await manager.cancel(second) }
            let isCancelled = await !Self.told(manager, "file failed 2")
            await manager.close()
            let next = try await scene.manager()
            if let first {
                #expect(next.ids.contains(first))
                if isPaused { #expect(next.word(first) == "paused", "\(calls) calls") }
            }
            if let second, isCancelled { #expect(!next.ids.contains(second), "\(calls) calls") }
            #expect(await !Self.told(next, "set aside"), "\(calls) calls")
            await next.close()
        }
    }

    /// Whether an event with these words was reported.
    private static func told(_ manager: DownloadManager, _ words: String) async -> Bool {
        guard let url = try? HTTPURL("https://a.example/") else { return false }
        let mark = DownloadID(.random(in: 1000 ... .max))
        manager.log.add(.cancelled(mark, url))
        var isReported = false
        for await event in manager.events {
            if event.words.hasPrefix(words) { isReported = true }
            if case .cancelled(mark, _) = event { break }
        }
        return isReported
    }

    @Test("A damaged record is moved aside and reported; the others run, and its number is not reused")
    func damaged() async throws {
        let first = try await scene.manager()
        for name in ["1", "2", "3"] { try await scene.add(name, to: first) }
        await first.pauseAll()
        await first.close()
        var bytes = try scene.contents("2.item")
        bytes[bytes.count / 2] ^= 1
        try scene.write(bytes, to: "2.item")
        try scene.write(Array(try scene.contents("1.item").dropLast()), to: "1.item")
        try scene.write(try scene.contents("3.item"), to: "9.item")
        let second = try await scene.manager()
        #expect(second.ids == [DownloadID(3)])
        try await second.resume(DownloadID(3))
        scene.downloads.endAll(.finish)
        let words = await second.events(until: "all finished")
        #expect(
            words.filter { $0.hasPrefix("set") } == [
                "set aside 1.item", "set aside 2.item", "set aside 9.item",
            ])
        #expect(try scene.names == ["3.item", "corrupt"])
        #expect(try await scene.add("4", to: second).number > 9)
        await second.close()
    }

    @Test("A file that is cut at any length never prevents opening the directory")
    func cuts() async throws {
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first)
        await first.pause(id)
        await first.close()
        let bytes = try scene.contents("1.item")
        for count in stride(from: 0, to: bytes.count, by: 7) {
            try scene.write(Array(bytes[..<count]), to: "1.item")
            try scene.write(Array(bytes[..<min(count, 12)]), to: "lock")
            let manager = try await scene.manager()
            #expect(manager.ids.isEmpty)
            await manager.close()
        }
        try scene.write(bytes, to: "1.item")
        let last = try await scene.manager()
        #expect(last.word(id) == "paused")
        await last.close()
    }

    @Test("A record of a later version is kept as it is and reported")
    func later() async throws {
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first)
        await first.close()
        let bytes = DownloadItemCodecTests.later(try scene.contents("1.item"))
        try scene.write(bytes, to: "1.item")
        let second = try await scene.manager()
        #expect(second.ids.isEmpty)
        #expect(await second.events(until: "left alone 1.item") == ["left alone 1.item"])
        #expect(try await scene.add("2", to: second).number > id.number)
        await second.close()
        #expect(try scene.contents("1.item") == bytes)
    }

    @Test("Other files, directories and links are neither read nor removed")
    func strangers() async throws {
        // They are created after the manager's directory.
        await (try await scene.manager()).close()
        let names = ["note.txt", "01.item", "-1.item", "x.item", "18446744073709551616.item", ".item"]
        for name in names { try scene.write(Array("mine".utf8), to: name) }
        try LinuxFileSystem().makeDirectory(scene.path + "/5.item")
        try FileManager.default.createSymbolicLink(
            atPath: scene.path + "/6.item", withDestinationPath: scene.path + "/note.txt")
        try scene.write([1, 2, 3], to: "7.item.new")
        let manager = try await scene.manager()
        #expect(manager.ids.isEmpty)
        #expect(await manager.events(until: "left alone 6.item").count == 2)
        await manager.close()
        #expect(try scene.names == (names + ["5.item", "6.item"]).sorted())
        #expect(try scene.contents("note.txt") == Array("mine".utf8))
    }

    @Test("The highest number leaves no number for a new download, which is an error")
    func lastNumber() async throws {
        try LinuxFileSystem().makeDirectory(scene.path)
        try scene.write([], to: "18446744073709551615.item")
        let manager = try await scene.manager()
        await #expect(throws: HTTPError.self) { try await scene.add("1", to: manager) }
        await manager.close()
    }

    @Test("A directory that is temporarily unreadable loses no download")
    func unreadable() async throws {
        let first = try await scene.manager()
        let id = try await scene.add("1", to: first)
        await first.pause(id)
        await first.close()
        let files = FaultyFileSystem()
        files.fail(.init(.open, path: ".item", times: 1, code: EMFILE))
        let second = try await scene.manager(files: files)
        #expect(await second.events(until: "left alone 1.item") == ["left alone 1.item"])
        await second.close()
        let third = try await scene.manager()
        #expect(third.word(id) == "paused")
        await third.close()
    }

    @Test("A removal that was interrupted by the end of the process is finished by the next one")
    func tombstones() async throws {
        let files = FaultyFileSystem()
        let first = try await scene.manager(files: files)
        let id = try await scene.add("1", to: first)
        await scene.downloads.run("1")
        files.fail(.init(.remove, path: "1.item", code: EIO))
        await first.cancel(id)
        await first.close()
        #expect(try scene.names == ["1.item"])
        let second = try await scene.manager()
        #expect(second.ids.isEmpty)
        _ = try await second.allFinished
        #expect(scene.downloads.record("1").discards == 2 && scene.downloads.record("1").runs == 1)
        #expect(try scene.names.isEmpty)
        await second.close()
    }
}
