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
        in folder: PartDirectory, _ files: any FileSystem = LinuxFileSystem()
    ) throws -> PartFile {
        let part = try #require(try folder.open(files))
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
        let folder = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try completePart(in: folder, files)
        let target = folder.names.target
        files.interrupt(.sync) {
            try? Data([1, 2]).write(to: URL(filePath: target))
        }
        #expect { try publish(part, .fail) } throws: { ($0 as? StorageError)?.isExistingFile == true }
        #expect(try folder.read("a.bin") == [1, 2])
        #expect(try folder.list() == ["a.bin"] + PartFilePublishTests.kept)
        #expect(part.record() != nil)
        // Once the name is free, the file gets it.
        try FileManager.default.removeItem(atPath: target)
        #expect(try publish(part, .fail) == target)
        #expect(try folder.read("a.bin") == PartFilePublishTests.content)
    }

    @Test("An existing file is replaced if that was chosen")
    func replaced() throws {
        let folder = try PartDirectory()
        try folder.write([1, 2], to: "a.bin")
        let part = try completePart(in: folder)
        #expect(try publish(part, .overwrite) == folder.names.target)
        #expect(try folder.read("a.bin") == PartFilePublishTests.content)
        #expect(try folder.list() == ["a.bin"])
    }

    @Test("A published file gets no further record, which nothing would remove")
    func noFurtherRecord() throws {
        let folder = try PartDirectory()
        let part = try completePart(in: folder)
        #expect(try publish(part, .fail) == folder.names.target)
        #expect(throws: PartFile.RecordError.self) {
            try part.note(
                PartDirectory.record([0..<1], total: PartFilePublishTests.total, owner: part.owner), epoch: 1)
        }
        #expect(try folder.list() == ["a.bin"])
    }

    @Test("Files that a killed run left are gone after the next run")
    func leftovers() throws {
        for bytes in [[], [7]] as [[UInt8]] {
            let folder = try PartDirectory()
            try folder.write(bytes, to: "a.bin.martlet-part")
            try folder.write([1], to: "a.bin.martlet-record")
            if !bytes.isEmpty {
                for name in ["a.bin.martlet-record-", "a.bin.martlet-part-"] {
                    try folder.write([1], to: name)
                }
            }
            let part = try #require(try folder.open())
            try part.renew(epoch: 1, expecting: PartFilePublishTests.total)
            try LinuxFileSystem().write(all: PartFilePublishTests.content, to: part.file, at: 0)
            #expect(try publish(part, .fail) == folder.names.target)
            #expect(try folder.list() == ["a.bin"])
        }
    }

    @Test("Another name is chosen if that was allowed")
    func renamed() throws {
        let folder = try PartDirectory()
        for name in ["a.bin", "a (1).bin", "a (3).bin"] { try folder.write([1], to: name) }
        let part = try completePart(in: folder)
        #expect(try publish(part, .rename) == "\(folder.path)/a (2).bin")
        #expect(try folder.list() == ["a (1).bin", "a (2).bin", "a (3).bin", "a.bin"])
    }

    @Test("Names are numbered up to 999, and no further")
    func lastName() throws {
        let folder = try PartDirectory()
        try folder.write([1], to: "a.bin")
        for number in 1...998 {
            #expect(unsafe symlink("nowhere", "\(folder.path)/a (\(number)).bin") == 0)
        }
        let part = try completePart(in: folder)
        #expect(try publish(part, .rename) == "\(folder.path)/a (999).bin")
        let next = try completePart(in: folder)
        #expect { try publish(next, .rename) } throws: { ($0 as? StorageError)?.isExistingFile == true }
        #expect(next.record() != nil)
    }

    @Test("A target that is a link is rejected or replaced itself; the file it leads to is unchanged")
    func link() throws {
        let folder = try PartDirectory()
        try folder.write([7], to: "canary")
        try FileManager.default.createSymbolicLink(
            atPath: folder.names.target, withDestinationPath: "\(folder.path)/canary")
        let part = try completePart(in: folder)
        #expect { try publish(part, .fail) } throws: { ($0 as? StorageError)?.isExistingFile == true }
        #expect(try publish(part, .overwrite) == folder.names.target)
        #expect(try folder.read("canary") == [7])
        #expect(try LinuxFileSystem().status(at: folder.names.target).kind == .file)
    }

    @Test(
        "A target that is a directory is never replaced",
        arguments: [DownloadOptions.Collision.fail, .overwrite])
    func folder(_ collision: DownloadOptions.Collision) throws {
        let folder = try PartDirectory()
        try FileManager.default.createDirectory(
            atPath: folder.names.target, withIntermediateDirectories: false)
        let part = try completePart(in: folder)
        #expect(throws: StorageError.self) { try publish(part, collision) }
        #expect(try folder.list() == ["a.bin"] + PartFilePublishTests.kept)
        #expect(part.record() != nil)
    }

    @Test("A file that is too short is never published")
    func shorter() throws {
        let folder = try PartDirectory()
        let part = try completePart(in: folder)
        #expect(throws: StorageError.self) { try part.publish(total: 3_000_001, .fail, modified: nil) }
        #expect(try folder.list() == PartFilePublishTests.kept)
    }

    @Test("Bytes that another process appended to the file are removed")
    func longer() throws {
        let folder = try PartDirectory()
        let part = try completePart(in: folder)
        _ = try part.publish(total: 2_999_999, .fail, modified: nil)
        let length = try LinuxFileSystem().status(at: folder.names.target).byteCount
        #expect(length == 2_999_999)
        #expect(try folder.list() == ["a.bin"])
    }

    @Test("The file gets the modification time of the server if that was chosen", arguments: [false, true])
    func remoteTime(_ isCrossOrigin: Bool) throws {
        let folder = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try completePart(in: folder, files)
        if isCrossOrigin { files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV)) }
        _ = try part.publish(total: PartFilePublishTests.total, .fail, modified: 784_903_526)
        #expect(
            try LinuxFileSystem().status(at: folder.names.target).modificationTime
                == 784_903_526 * 1_000_000_000)
    }

    @Test(
        "A file that cannot be moved (EXDEV) is copied to its name, and nothing else is left",
        arguments: [DownloadOptions.Collision.fail, .overwrite, .rename])
    func elsewhere(_ collision: DownloadOptions.Collision) throws {
        let folder = try PartDirectory()
        if collision != .fail { try folder.write([1], to: "a.bin") }
        let files = FaultyFileSystem()
        let part = try completePart(in: folder, files)
        files.limitPieces(to: 700_001)
        files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV))
        let syncs = files.count(of: .sync)
        let name = try publish(part, collision)
        let expected = collision == .rename ? "a (1).bin" : "a.bin"
        #expect(name == "\(folder.path)/\(expected)")
        #expect(try folder.read(expected) == PartFilePublishTests.content)
        #expect(try folder.list() == (collision == .rename ? ["a (1).bin", "a.bin"] : ["a.bin"]))
        // The syncs of the part file, its copy and the directory.
        #expect(files.count(of: .sync) - syncs == 3)
    }

    @Test(
        "A copy that fails or whose name is taken is removed, and the bytes and their record stay",
        arguments: [FaultyFileSystem.Call.create, .read, .write, .sync, .rename, nil])
    func failingCopy(_ call: FaultyFileSystem.Call?) throws {
        let folder = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try completePart(in: folder, files)
        files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV))
        switch call {
        case nil: try folder.write([1], to: "a.bin")
        case .sync: files.fail(FaultyFileSystem.Fault(.sync, after: 1, code: EIO))
        case .rename: files.fail(FaultyFileSystem.Fault(.rename, code: EXDEV))
        case .read: files.fail(FaultyFileSystem.Fault(.read, after: 1, code: EIO))
        default: files.fail(FaultyFileSystem.Fault(call, code: ENOSPC))
        }
        #expect(throws: StorageError.self) { try publish(part, .fail) }
        files.mend()
        #expect(try folder.list() == (call == nil ? ["a.bin"] : []) + PartFilePublishTests.kept)
        #expect(part.record() != nil)
        if call == nil { try FileManager.default.removeItem(atPath: folder.names.target) }
        #expect(try publish(part, .fail) == folder.names.target)
        #expect(try folder.read("a.bin") == PartFilePublishTests.content)
    }
}
