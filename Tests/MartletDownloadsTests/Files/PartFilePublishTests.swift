import FoundationEssentials
import Glibc
import MartletDownloads
import MartletStorage
import MartletTestSupport
import Testing

@Suite("Publishing a complete download under its name")
struct PartFilePublishTests {
    private static let total: UInt64 = 3_000_000
    private static let content = PartDirectory.bytes(0..<total, version: 1)

    /// A part file that is complete.
    private func completePart(
        in directory: PartDirectory, _ files: any FileSystem = LinuxFileSystem()
    ) throws -> PartFile {
        let part = try #require(try directory.open(files))
        try part.renew(epoch: 1, expecting: PartFilePublishTests.total)
        try LinuxFileSystem().write(all: PartFilePublishTests.content, to: part.file, at: 0)
        try part.note(
            PartDirectory.record(
                [0..<PartFilePublishTests.total], total: PartFilePublishTests.total, owner: part.owner),
            epoch: 1)
        return part
    }

    private func publish(_ part: PartFile, _ collision: DownloadOptions.Collision) throws -> String {
        try part.publish(total: PartFilePublishTests.total, collision, modified: nil)
    }

    private static let kept = ["a.bin.martlet-part", "a.bin.martlet-record"]

    @Test("A name that is taken, even at the last moment, is rejected, and the bytes stay")
    func rejected() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try completePart(in: directory, files)
        let target = directory.names.target
        files.interrupt(.sync) {
            try? Data([1, 2]).write(to: URL(filePath: target))
        }
        #expect { try publish(part, .fail) } throws: { ($0 as? StorageError)?.isExistingFile == true }
        #expect(try directory.read("a.bin") == [1, 2])
        #expect(try directory.list() == ["a.bin"] + PartFilePublishTests.kept)
        #expect(part.record() != nil)
        // Once the name is free, the file gets it.
        try FileManager.default.removeItem(atPath: target)
        #expect(try publish(part, .fail) == target)
        #expect(try directory.read("a.bin") == PartFilePublishTests.content)
    }

    @Test("An existing file is replaced if that was chosen")
    func replaced() throws {
        let directory = try PartDirectory()
        try directory.write([1, 2], to: "a.bin")
        let part = try completePart(in: directory)
        #expect(try publish(part, .overwrite) == directory.names.target)
        #expect(try directory.read("a.bin") == PartFilePublishTests.content)
        #expect(try directory.list() == ["a.bin"])
    }

    @Test("A file that need not survive a power cut is published without a sync")
    func unsynced() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        files.fail(.init(.sync, code: EIO))
        let part = try #require(try directory.open(files, durability: .unsynced))
        try part.renew(epoch: 1, expecting: PartFilePublishTests.total)
        try LinuxFileSystem().write(all: PartFilePublishTests.content, to: part.file, at: 0)
        #expect(try publish(part, .fail) == directory.names.target)
        #expect(files.count(of: .sync) == 0)
        #expect(try directory.read("a.bin") == PartFilePublishTests.content)
        #expect(try directory.list() == ["a.bin"])
    }

    @Test("Without syncs at the end, records are synced nevertheless, and bytes that one of them lost are rejected")
    func unsyncedAfterFailure() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try #require(try directory.open(files, durability: .unsynced))
        try part.renew(epoch: 1, expecting: PartFilePublishTests.total)
        try LinuxFileSystem().write(all: PartFilePublishTests.content, to: part.file, at: 0)
        files.fail(.init(.sync, times: 1, code: EIO))
        let record = PartDirectory.record([0..<1], total: PartFilePublishTests.total, owner: part.owner)
        #expect(throws: PartFile.RecordError.self) { try part.note(record, epoch: 1) }
        #expect { try publish(part, .fail) } throws: { ($0 as? StorageError)?.code == EIO }
        #expect(try !directory.list().contains("a.bin"))
    }

    @Test("A published file gets no further record, which nothing would remove")
    func noFurtherRecord() throws {
        let directory = try PartDirectory()
        let part = try completePart(in: directory)
        #expect(try publish(part, .fail) == directory.names.target)
        #expect(throws: PartFile.RecordError.self) {
            try part.note(
                PartDirectory.record([0..<1], total: PartFilePublishTests.total, owner: part.owner), epoch: 1)
        }
        #expect(try directory.list() == ["a.bin"])
    }

    @Test("Files that a killed run left are gone after the next run")
    func leftovers() throws {
        for bytes in [[], [7]] as [[UInt8]] {
            let directory = try PartDirectory()
            try directory.write(bytes, to: "a.bin.martlet-part")
            try directory.write([1], to: "a.bin.martlet-record")
            if !bytes.isEmpty {
                for name in ["a.bin.martlet-record-", "a.bin.martlet-part-"] {
                    try directory.write([1], to: name)
                }
            }
            let part = try #require(try directory.open())
            try part.renew(epoch: 1, expecting: PartFilePublishTests.total)
            try LinuxFileSystem().write(all: PartFilePublishTests.content, to: part.file, at: 0)
            #expect(try publish(part, .fail) == directory.names.target)
            #expect(try directory.list() == ["a.bin"])
        }
    }

    @Test("Another name is chosen if that was allowed")
    func renamed() throws {
        let directory = try PartDirectory()
        for name in ["a.bin", "a (1).bin", "a (3).bin"] { try directory.write([1], to: name) }
        let part = try completePart(in: directory)
        #expect(try publish(part, .rename) == "\(directory.path)/a (2).bin")
        #expect(try directory.list() == ["a (1).bin", "a (2).bin", "a (3).bin", "a.bin"])
    }

    @Test("Names are numbered up to 999, and no further")
    func lastName() throws {
        let directory = try PartDirectory()
        try directory.write([1], to: "a.bin")
        for number in 1...998 {
            #expect(unsafe symlink("nowhere", "\(directory.path)/a (\(number)).bin") == 0)
        }
        let part = try completePart(in: directory)
        #expect(try publish(part, .rename) == "\(directory.path)/a (999).bin")
        let next = try completePart(in: directory)
        #expect { try publish(next, .rename) } throws: { ($0 as? StorageError)?.isExistingFile == true }
        #expect(next.record() != nil)
    }

    @Test("A target that is a link is rejected or replaced itself; the file it leads to is unchanged")
    func link() throws {
        let directory = try PartDirectory()
        try directory.write([7], to: "canary")
        try FileManager.default.createSymbolicLink(
            atPath: directory.names.target, withDestinationPath: "\(directory.path)/canary")
        let part = try completePart(in: directory)
        #expect { try publish(part, .fail) } throws: { ($0 as? StorageError)?.isExistingFile == true }
        #expect(try publish(part, .overwrite) == directory.names.target)
        #expect(try directory.read("canary") == [7])
        #expect(try LinuxFileSystem().status(at: directory.names.target).kind == .file)
    }

    @Test(
        "A target that is a directory is never replaced",
        arguments: [DownloadOptions.Collision.fail, .overwrite])
    func directory(_ collision: DownloadOptions.Collision) throws {
        let directory = try PartDirectory()
        try FileManager.default.createDirectory(
            atPath: directory.names.target, withIntermediateDirectories: false)
        let part = try completePart(in: directory)
        #expect(throws: StorageError.self) { try publish(part, collision) }
        #expect(try directory.list() == ["a.bin"] + PartFilePublishTests.kept)
        #expect(part.record() != nil)
    }

    @Test("A file that is too short is never published")
    func shorter() throws {
        let directory = try PartDirectory()
        let part = try completePart(in: directory)
        #expect(throws: StorageError.self) { try part.publish(total: 3_000_001, .fail, modified: nil) }
        #expect(try directory.list() == PartFilePublishTests.kept)
    }

    @Test("Bytes that another process appended to the file are removed")
    func longer() throws {
        let directory = try PartDirectory()
        let part = try completePart(in: directory)
        _ = try part.publish(total: 2_999_999, .fail, modified: nil)
        let length = try LinuxFileSystem().status(at: directory.names.target).byteCount
        #expect(length == 2_999_999)
        #expect(try directory.list() == ["a.bin"])
    }

    @Test("The file gets the modification time of the server if that was chosen", arguments: [false, true])
    func remoteTime(_ isCrossDevice: Bool) throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try completePart(in: directory, files)
        if isCrossDevice { files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV)) }
        _ = try part.publish(total: PartFilePublishTests.total, .fail, modified: 784_903_526)
        #expect(
            try LinuxFileSystem().status(at: directory.names.target).modificationTime
                == 784_903_526 * 1_000_000_000)
    }

    @Test(
        "A file that cannot be moved (EXDEV) is copied to its name, and nothing else is left",
        arguments: [DownloadOptions.Collision.fail, .overwrite, .rename])
    func elsewhere(_ collision: DownloadOptions.Collision) throws {
        let directory = try PartDirectory()
        if collision != .fail { try directory.write([1], to: "a.bin") }
        let files = FaultyFileSystem()
        let part = try completePart(in: directory, files)
        files.limitPieces(to: 700_001)
        files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV))
        let syncs = files.count(of: .sync)
        let name = try publish(part, collision)
        let expected = collision == .rename ? "a (1).bin" : "a.bin"
        #expect(name == "\(directory.path)/\(expected)")
        #expect(try directory.read(expected) == PartFilePublishTests.content)
        #expect(try directory.list() == (collision == .rename ? ["a (1).bin", "a.bin"] : ["a.bin"]))
        // The syncs of the part file, its copy and the directory.
        #expect(files.count(of: .sync) - syncs == 3)
    }

    @Test(
        "A copy that fails or whose name is taken is removed, and the bytes and their record stay",
        arguments: [FaultyFileSystem.Call.create, .read, .write, .sync, .rename, nil])
    func failingCopy(_ call: FaultyFileSystem.Call?) throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try completePart(in: directory, files)
        files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV))
        switch call {
        case nil: try directory.write([1], to: "a.bin")
        case .sync: files.fail(FaultyFileSystem.Fault(.sync, after: 1, code: EIO))
        case .rename: files.fail(FaultyFileSystem.Fault(.rename, code: EXDEV))
        case .read: files.fail(FaultyFileSystem.Fault(.read, after: 1, code: EIO))
        default: files.fail(FaultyFileSystem.Fault(call, code: ENOSPC))
        }
        #expect(throws: StorageError.self) { try publish(part, .fail) }
        files.mend()
        #expect(try directory.list() == (call == nil ? ["a.bin"] : []) + PartFilePublishTests.kept)
        #expect(part.record() != nil)
        if call == nil { try FileManager.default.removeItem(atPath: directory.names.target) }
        #expect(try publish(part, .fail) == directory.names.target)
        #expect(try directory.read("a.bin") == PartFilePublishTests.content)
    }
}
