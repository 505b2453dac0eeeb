import FoundationEssentials
import Glibc
import Martlet
@testable import MartletDownloads
import MartletStorage
import MartletTestSupport
import Testing

@Suite("Recognizing a published file")
struct PublicationRecordTests {
    private static let total: UInt64 = 5_000
    private static let content = PartDirectory.bytes(0..<total, version: 1)

    /// A part file that is complete and recorded.
    private func part(
        in directory: PartDirectory, _ files: any FileSystem = LinuxFileSystem()
    ) throws -> (PartFile, PublicationRecord) {
        let total = PublicationRecordTests.total
        let part = try #require(try directory.open(files))
        try part.renew(epoch: 1, expecting: total)
        try LinuxFileSystem().write(all: PublicationRecordTests.content, to: part.file, at: 0)
        try part.note(PartDirectory.record([0..<total], total: total, owner: part.owner), epoch: 1)
        let result = DownloadResult(
            path: FilePath(directory.names.target), byteCount: total, receivedByteCount: total,
            url: try HTTPURL("http://files.example/a.bin"))
        return (part, PublicationRecord(result: result, part: try part.seal(total: total, modified: nil)))
    }

    private func complete(
        _ publication: PublicationRecord, _ collision: DownloadOptions.Collision = .fail
    ) throws -> PublishedName? {
        try publication.complete(collision, files: LinuxFileSystem())
    }

    /// Moves the part file to its name, and stops there.
    private func move(_ directory: PartDirectory, to name: String = "a.bin") throws {
        try LinuxFileSystem().rename(directory.names.part, to: "\(directory.path)/\(name)")
    }

    @Test("A published file is found, and its extra files are removed")
    func found() throws {
        let directory = try PartDirectory()
        let (_, publication) = try part(in: directory)
        try move(directory)
        try directory.write([1], to: "a.bin.martlet-record-")
        try directory.write([1], to: "a.bin.martlet-part-")
        let name = try #require(try complete(publication))
        #expect(name.path == directory.names.target && name.syncError == nil)
        #expect(try directory.list() == ["a.bin"])
        #expect(try directory.read("a.bin") == PublicationRecordTests.content)
        // A second call gives the same result.
        #expect(try complete(publication)?.path == directory.names.target)
    }

    @Test("A file that still has its part name is not published, and stays as it is")
    func unnamed() throws {
        let directory = try PartDirectory()
        let (part, publication) = try part(in: directory)
        #expect(try complete(publication) == nil)
        #expect(part.record() != nil)
        try FileManager.default.removeItem(atPath: directory.names.part)
        #expect(try complete(publication) == nil)
    }

    @Test("Another file with the same name and length is not recognized", arguments: [5_000, 4_999])
    func other(_ count: Int) throws {
        let directory = try PartDirectory()
        let (part, publication) = try part(in: directory)
        try directory.write(Array(PublicationRecordTests.content.prefix(count)), to: "a.bin")
        #expect(try complete(publication) == nil)
        #expect(part.record() != nil)
    }

    @Test("A file that grew or was cut afterwards is not recognized")
    func changed() throws {
        let directory = try PartDirectory()
        let (part, publication) = try part(in: directory)
        try move(directory)
        try LinuxFileSystem().write(all: [1], to: part.file, at: PublicationRecordTests.total)
        #expect(try complete(publication) == nil)
        try LinuxFileSystem().truncate(part.file, to: 10)
        #expect(try complete(publication) == nil)
    }

    @Test("A file that was published under a numbered name is found")
    func numbered() throws {
        let directory = try PartDirectory()
        let (_, publication) = try part(in: directory)
        try directory.write([1], to: "a.bin")
        try move(directory, to: "a (2).bin")
        #expect(try complete(publication) == nil)
        #expect(try complete(publication, .rename)?.path == "\(directory.path)/a (2).bin")
        #expect(try directory.list() == ["a (2).bin", "a.bin"])
    }

    @Test("If both names exist, as between link and unlink, the part name is removed")
    func bothNames() throws {
        let directory = try PartDirectory()
        let (_, publication) = try part(in: directory)
        #expect(unsafe link(directory.names.part, directory.names.target) == 0)
        #expect(try complete(publication)?.path == directory.names.target)
        #expect(try directory.list() == ["a.bin"])
    }

    @Test("A published copy is found, and its original is removed")
    func copied() throws {
        let directory = try PartDirectory()
        var (part, publication) = try part(in: directory)
        publication.copy = try part.copy(total: PublicationRecordTests.total, modified: nil)
        #expect(try complete(publication) == nil)
        try LinuxFileSystem().rename(directory.names.nextPart, to: directory.names.target)
        #expect(try complete(publication)?.path == directory.names.target)
        #expect(try directory.list() == ["a.bin"])
    }

    @Test("A download that started later keeps its bytes and its record")
    func later() throws {
        let directory = try PartDirectory()
        let (first, publication) = try part(in: directory)
        try move(directory)
        first.close()
        let (second, _) = try part(in: directory)
        #expect(try complete(publication)?.path == directory.names.target)
        #expect(second.record() != nil)
        #expect(try directory.list() == ["a.bin", "a.bin.martlet-part", "a.bin.martlet-record"])
    }

    @Test("A directory that cannot be synced is reported, and the identifying record stays until it can")
    func unsynced() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let (part, publication) = try part(in: directory, files)
        files.fail(FaultyFileSystem.Fault(.sync, times: 2, code: EIO))
        let name = try #require(try part.publish(.fail))
        #expect(name.path == directory.names.target && name.syncError?.code == EIO)
        #expect(try directory.list() == ["a.bin", "a.bin.martlet-record"])
        let again = try #require(try publication.complete(.fail, files: files))
        #expect(again.path == directory.names.target && again.syncError?.code == EIO)
        #expect(try directory.list() == ["a.bin", "a.bin.martlet-record"])
        let last = try #require(try publication.complete(.fail, files: files))
        #expect(last.path == directory.names.target && last.syncError == nil)
        #expect(try directory.list() == ["a.bin"])
    }

    @Test("A file is recognized after a reboot or a power cut, but not after both")
    func marks() throws {
        let directory = try PartDirectory()
        let (part, publication) = try part(in: directory)
        var status = try LinuxFileSystem().status(of: part.file)
        let mark = publication.part
        #expect(mark.isOf(status) && mark == FileIdentity(status))
        status.device &+= 1
        #expect(mark.isOf(status))
        status.modificationTime -= 1
        #expect(!mark.isOf(status))
        status.device = mark.device
        #expect(mark.isOf(status))
        status.identity &+= 1
        #expect(!mark.isOf(status))
        status = try LinuxFileSystem().status(of: part.file)
        status.kind = .other
        #expect(!mark.isOf(status))
    }
}
