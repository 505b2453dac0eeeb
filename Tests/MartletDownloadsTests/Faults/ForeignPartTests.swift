import Foundation
import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

@Suite("Files of another user in a shared directory")
struct ForeignPartTests {
    /// A change that makes a file another user's, or writable by another user.
    enum Change: String, CaseIterable, Sendable {
        case owner, writableByAll, writableByGroup

        func apply(to path: String) {
            switch self {
            case .owner: #expect(unsafe chown(path, 65_534, gid_t.max) == 0)
            case .writableByAll: #expect(unsafe chmod(path, 0o606) == 0)
            case .writableByGroup: #expect(unsafe chmod(path, 0o660) == 0)
            }
        }
    }

    @Test(
        "Part files and records of another user are not used: the download starts over", arguments: Change.allCases,
        [[".martlet-part"], [".martlet-record"], [".martlet-part", ".martlet-record"]])
    func planted(_ change: Change, _ suffixes: [String]) async throws {
        // Only root can change the owner of a file.
        guard change != .owner || geteuid() == 0 else { return }
        try await RangeScene.with(Samples.cutOnce()) { scene in
            var options = RangeScene.options
            options.retry.maximumRetries = 0
            _ = try await scene.run(options)
            let planted = scene.path.string + ".martlet-part"
            // These bytes differ from the server's, and the record claims some of them.
            let bytes = [UInt8](repeating: 0x58, count: Int(Samples.one.byteCount))
            let handle = try #require(FileHandle(forUpdatingAtPath: planted))
            try handle.write(contentsOf: bytes)
            try handle.close()
            for suffix in suffixes { change.apply(to: scene.path.string + suffix) }
            scene.ranges.play(RangeBehavior(Samples.one))
            let run = try await scene.run(options)
            #expect(run.value?.resumedByteCount == 0, "\(run.log)")
            #expect(run.requests.first?.start == 0, "\(run.log)")
            try await scene.expectOrder(after: run, versions: [Samples.one])
        }
    }

    /// Makes a part writable by all before each query of its status: so a mount with a fixed mode, or a directory with
    /// a default ACL, shows even a new file.
    private static func expose(_ path: String, in files: FaultyFileSystem) {
        files.interrupt(.status, at: path) { [weak files] in
            _ = unsafe chmod(path, 0o666)
            if let files { ForeignPartTests.expose(path, in: files) }
        }
    }

    @Test(
        "A file is downloaded on a file system that shows each file as writable by all",
        arguments: [DownloadOptions.Collision.fail, .rename, .overwrite])
    func exposed(_ collision: DownloadOptions.Collision) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let files = FaultyFileSystem()
            ForeignPartTests.expose(scene.path.string + ".martlet-part", in: files)
            let options = RangeScene.options { $0.collision = collision }
            let job = DownloadJob(
                DownloadJob.Plan(url: try HTTPURL(scene.url), target: .file(scene.path), options: options),
                session: scene.session, status: DownloadStatus(), files: files)
            #expect(try await job.run().path == scene.path)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("On such a file system a part has one owner at a time, and the next one starts over")
    func exposedOwner() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        ForeignPartTests.expose(directory.names.part, in: files)
        let part = try #require(try directory.open(files))
        try PartDirectory.fill(part.file, 0..<100)
        #expect(try directory.open(files) == nil)
        #expect(try part.byteCount() == 100)
        #expect(try directory.list() == ["a.bin.martlet-part"])
        part.close()
        let next = try #require(try directory.open(files))
        #expect(try next.byteCount() == 0)
    }

    @Test("A part that another process has replaced, because it looks like another user's, is not published")
    func replaced() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        ForeignPartTests.expose(directory.names.part, in: files)
        let part = try #require(try directory.open(files))
        try PartDirectory.fill(part.file, 0..<100)
        try LinuxFileSystem().remove(directory.names.part)
        try directory.write([1], to: "a.bin.martlet-part")
        #expect(throws: StorageError.self) { try part.publish(total: 100, .fail, modified: nil) }
        #expect(try directory.list() == ["a.bin.martlet-part"])
    }

    @Test("A complete record of another user is not published without a request to the server")
    func complete() throws {
        guard geteuid() == 0 else { return }
        let directory = try PartDirectory()
        try directory.write(PartDirectory.bytes(0..<100, version: 2), to: "a.bin.martlet-part")
        try directory.write(
            PartDirectory.record([0..<100], total: 100, owner: 99).bytes, to: "a.bin.martlet-record")
        for path in [directory.names.part, directory.names.record] {
            #expect(unsafe chown(path, 65_534, gid_t.max) == 0)
        }
        let part = try #require(try directory.open())
        #expect(try part.byteCount() == 0 && part.record() == nil)
    }

    @Test("A lock on another user's part file does not block the download")
    func locked() throws {
        guard geteuid() == 0 else { return }
        let directory = try PartDirectory()
        let planted = try #require(try directory.open())
        #expect(unsafe chown(directory.names.part, 65_534, gid_t.max) == 0)
        #expect(try directory.open() != nil)
        planted.close()
    }

    @Test("A pipe, a device, and a link to one are not replaced")
    func endpoints() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let options = RangeScene.options { $0.collision = .overwrite }
            let path = scene.path.string
            let kinds: [() -> Bool] = [
                { unsafe mkfifo(path, 0o600) == 0 },
                { unsafe symlink("/dev/null", path) == 0 },
            ]
            for make in kinds {
                #expect(make())
                let before =
                    try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
                let run = try await scene.run(options)
                #expect(run.error?.code == .fileFailed, "\(run.log)")
                #expect(run.requests.isEmpty)
                let after =
                    try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
                #expect(before == after)
                #expect(try scene.directory.names() == [RangeScene.name])
                #expect(unsafe unlink(path) == 0)
            }
        }
    }
}
