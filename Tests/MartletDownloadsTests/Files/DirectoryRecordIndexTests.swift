@testable import MartletDownloads
import MartletStorage
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Index of the records in a directory")
struct DirectoryRecordIndexTests {
    private let now = MonotonicTime(nanoseconds: 1_000_000_000_000)

    /// A directory with a record of one target, and other files.
    private func directory() throws -> PartDirectory {
        let directory = try PartDirectory()
        for name in ["b.bin.martlet-record", "a.bin.martlet-record", "a.bin.martlet-part", "c.bin"] {
            try directory.write([1], to: name)
        }
        return directory
    }

    private static let found = ["a.bin.martlet-record", "b.bin.martlet-record"]

    @Test("A directory is listed once per second, however many queries there are")
    func listed() throws {
        let directory = try directory()
        let files = FaultyFileSystem()
        let records = DirectoryRecordIndex()
        let path = directory.path + "/"
        #expect(records.names(known: path, now: now) == nil)
        for milliseconds in [0, 1, 500, 999] {
            let later = now.advanced(by: .milliseconds(milliseconds))
            #expect(try records.names(in: path, files, now: later) == DirectoryRecordIndexTests.found)
            #expect(records.names(known: path, now: later) == DirectoryRecordIndexTests.found)
        }
        #expect(files.count(of: .names) == 1)
        let later = now.advanced(by: .seconds(1))
        #expect(records.names(known: path, now: later) == nil)
        #expect(try records.names(in: path, files, now: later) == DirectoryRecordIndexTests.found)
        #expect(files.count(of: .names) == 2)
    }

    @Test("Records of this process are known immediately, even while the directory is being listed")
    func written() throws {
        let directory = try directory()
        let files = FaultyFileSystem()
        let records = DirectoryRecordIndex()
        let path = directory.path + "/"
        #expect(try records.names(in: path, files, now: now).count == 2)
        try directory.write([1], to: "z.bin.martlet-record")
        records.forget(path)
        #expect(try records.names(in: path, files, now: now).count == 3)
        // The write comes after the directory is listed, and before the result is stored.
        records.forget(path)
        files.interrupt(.names) { records.forget(path) }
        #expect(try records.names(in: path, files, now: now).count == 3)
        #expect(records.names(known: path, now: now) == nil)
    }

    @Test("A directory that cannot be listed is listed again")
    func failing() throws {
        let directory = try directory()
        let files = FaultyFileSystem()
        let records = DirectoryRecordIndex()
        files.fail(FaultyFileSystem.Fault(.names, times: 1, code: 5))
        #expect(throws: StorageError.self) { try records.names(in: directory.path + "/", files, now: now) }
        #expect(try records.names(in: directory.path + "/", files, now: now) == DirectoryRecordIndexTests.found)
    }

    @Test("A part file that writes a record causes a new listing of its directory")
    func noting() throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open(LinuxFileSystem()))
        try part.renew(epoch: 1, expecting: nil)
        let before = try DirectoryRecordIndex.shared.names(in: part.names.directory, LinuxFileSystem())
        #expect(before.isEmpty)
        try part.note(PartDirectory.record([], total: 300, owner: part.owner), epoch: 1)
        #expect(DirectoryRecordIndex.shared.names(known: part.names.directory) == nil)
    }
}
