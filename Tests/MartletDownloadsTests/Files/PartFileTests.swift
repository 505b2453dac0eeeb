import FoundationEssentials
import Glibc
import MartletDownloads
import MartletStorage
import MartletTestSupport
import Synchronization
import Testing

@Suite("Part file of a download")
struct PartFileTests {
    private static let range: Range<UInt64> = 0..<10_000

    @Test("The next run finds the recorded bytes")
    func resumed() throws {
        let directory = try PartDirectory()
        do {
            let part = try #require(try directory.open())
            try part.renew(epoch: 1, expecting: 20_000)
            try PartDirectory.fill(part.file, PartFileTests.range)
            #expect(part.record() == nil)
            try part.note(PartDirectory.record([0..<10_000], total: 20_000, owner: part.owner), epoch: 1)
        }
        let next = try #require(try directory.open())
        let record = try #require(next.record())
        #expect(record.written == RangeSet([0..<10_000]) && record.total == 20_000)
        #expect(try next.byteCount() == 10_000)
        #expect(try directory.list() == ["a.bin.martlet-part", "a.bin.martlet-record"])
        // The second run continues from there, and its records count.
        try PartDirectory.fill(next.file, 10_000..<20_000)
        try next.note(PartDirectory.record([0..<20_000], total: 20_000, owner: next.owner), epoch: 1)
        #expect(next.record()?.written == RangeSet([0..<20_000]))
        #expect(try next.publish(total: 20_000, .fail, modified: nil) == directory.names.target)
        #expect(try directory.list() == ["a.bin"])
        #expect(try directory.read("a.bin") == PartDirectory.bytes(0..<20_000, version: 1))
    }

    @Test("A part file has one owner at a time; the next one opens it after its release")
    func owners() throws {
        let directory = try PartDirectory()
        var first = try directory.open()
        #expect(first != nil)
        #expect(try directory.open() == nil)
        first = nil
        #expect(try directory.open() != nil)
    }

    @Test("The owner keeps the lock when the file restarts")
    func ownersOfRenewed() throws {
        let directory = try PartDirectory()
        let first = try #require(try directory.open())
        try PartDirectory.fill(first.file, PartFileTests.range)
        try first.renew(epoch: 1, expecting: nil)
        #expect(try directory.open() == nil)
        try first.renew(epoch: 2, expecting: nil)
        #expect(try directory.open() == nil)
    }

    @Test("A process that opens the part file just before its publication gets a new one")
    func publishedMeanwhile() throws {
        let directory = try PartDirectory()
        var owner = try directory.open()
        try owner?.renew(epoch: 1, expecting: nil)
        try PartDirectory.fill(#require(owner).file, PartFileTests.range)
        let files = FaultyFileSystem()
        let holder = Holder(owner)
        owner = nil
        files.interrupt(.lock) {
            holder.part.withLock { part in
                _ = try? part?.publish(total: 10_000, .fail, modified: nil)
                part = nil
            }
        }
        let second = try #require(try directory.open(files))
        #expect(try second.byteCount() == 0)
        try PartDirectory.fill(second.file, 0..<5, version: 2)
        #expect(try directory.read("a.bin") == PartDirectory.bytes(PartFileTests.range, version: 1))
    }

    /// The owner of a part file, which a call on another file system releases.
    private final class Holder: Sendable {
        let part: Mutex<PartFile?>
        init(_ part: PartFile?) { self.part = Mutex(part) }
    }

    @Test("Late writes of an old stream never reach the new file")
    func renewed() throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open())
        try part.renew(epoch: 1, expecting: nil)
        // The old stream has not written yet: the file is empty when the next stream starts.
        let first = part.file
        try part.renew(epoch: 2, expecting: 4 << 20)
        let second = part.file
        try PartDirectory.fill(second, 0..<100, version: 2)
        try PartDirectory.fill(first, 0..<200, version: 1)
        try part.renew(epoch: 3, expecting: nil)
        try PartDirectory.fill(second, 0..<300, version: 2)
        try PartDirectory.fill(part.file, 0..<50, version: 1)
        #expect(try part.byteCount() == 50)
        #expect(try directory.read("a.bin.martlet-part") == PartDirectory.bytes(0..<50, version: 1))
        #expect(try directory.list() == ["a.bin.martlet-part"])
    }

    @Test(
        "A second or late stream that restarts the file keeps the bytes of the first"
    )
    func renewedOnce() throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open())
        try part.renew(epoch: 2, expecting: nil)
        try PartDirectory.fill(part.file, 0..<100)
        try part.renew(epoch: 2, expecting: nil)
        try part.renew(epoch: 1, expecting: nil)
        #expect(try part.byteCount() == 100)
        try part.note(PartDirectory.record([0..<100], total: 100, owner: part.owner), epoch: 2)
        #expect(part.record() != nil)
    }

    @Test("A record of bytes that no longer exist is not written")
    func outdated() throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open())
        try part.renew(epoch: 1, expecting: nil)
        try PartDirectory.fill(part.file, 0..<100)
        try part.note(PartDirectory.record([0..<100], total: 200, owner: part.owner), epoch: 1)
        try part.renew(epoch: 2, expecting: nil)
        #expect(part.record() == nil)
        #expect(throws: PartFile.RecordError.self) {
            try part.note(PartDirectory.record([0..<100], total: 200, owner: part.owner), epoch: 1)
        }
        #expect(try directory.list() == ["a.bin.martlet-part"])
    }

    @Test("Another owner's record that appears despite the lock is kept")
    func taken() throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open())
        try part.renew(epoch: 1, expecting: nil)
        try PartDirectory.fill(part.file, 0..<100)
        let record = PartDirectory.record([0..<50], total: 200, owner: part.owner)
        try part.note(record, epoch: 1)
        let foreign = PartDirectory.record([0..<10], total: 200, owner: part.owner &+ 1).bytes
        try directory.write(foreign, to: "a.bin.martlet-record")
        #expect {
            try part.note(record, epoch: 1)
        } throws: { error in
            if case PartFile.RecordError.taken = error { true } else { false }
        }
        #expect(try directory.read("a.bin.martlet-record") == foreign)
    }

    @Test("A record of an earlier run is adopted by the run that read it")
    func takenOver() throws {
        let directory = try PartDirectory()
        try directory.write(PartDirectory.bytes(0..<100, version: 1), to: "a.bin.martlet-part")
        try directory.write(
            PartDirectory.record([0..<100], total: 200, owner: 99).bytes, to: "a.bin.martlet-record")
        let part = try #require(try directory.open())
        #expect(part.record() != nil)
        try part.note(PartDirectory.record([0..<100], total: 200, owner: part.owner), epoch: 1)
        #expect(part.record()?.owner == part.owner)
    }

    @Test(
        "A damaged, too long or wrong record is ignored, and the next one is valid"
    )
    func unusableRecords() throws {
        let directory = try PartDirectory()
        try directory.write(PartDirectory.bytes(0..<100, version: 1), to: "a.bin.martlet-part")
        let part = try #require(try directory.open())
        let whole = PartDirectory.record([0..<100], total: 200, owner: 3).bytes
        let claimsMore = PartDirectory.record([0..<101], total: 200, owner: 3).bytes
        let tooLong = whole + [UInt8](repeating: 0, count: ResumeRecord.byteLimit)
        for bytes in [[], Array(whole.dropLast()), claimsMore, tooLong, [1, 2, 3]] {
            try directory.write(bytes, to: "a.bin.martlet-record")
            #expect(part.record() == nil)
        }
        try part.note(PartDirectory.record([0..<100], total: 200, owner: part.owner), epoch: 1)
        #expect(part.record() != nil)
        try FileManager.default.removeItem(atPath: directory.names.record)
        try FileManager.default.createDirectory(
            atPath: directory.names.record, withIntermediateDirectories: false)
        #expect(part.record() == nil)
    }

    @Test("A record that is cut or has any byte changed is ignored, and opening it never fails")
    func damagedRecords() throws {
        let directory = try PartDirectory()
        try directory.write(PartDirectory.bytes(0..<100, version: 1), to: "a.bin.martlet-part")
        let part = try #require(try directory.open())
        let whole = PartDirectory.record([0..<100], total: 200, owner: 3).bytes
        for place in whole.indices {
            try directory.write(Array(whole[..<place]), to: "a.bin.martlet-record")
            #expect(part.record() == nil)
            var damaged = whole
            damaged[place] ^= 0x20
            try directory.write(damaged, to: "a.bin.martlet-record")
            #expect(part.record() == nil)
        }
        try directory.write(whole, to: "a.bin.martlet-record")
        #expect(part.record() != nil)
    }

    @Test("Discarding removes all files")
    func discarded() throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open())
        try part.renew(epoch: 1, expecting: 4 << 20)
        try PartDirectory.fill(part.file, 0..<100)
        try part.note(PartDirectory.record([0..<100], total: 200, owner: part.owner), epoch: 1)
        try directory.write([1], to: "a.bin.martlet-part-")
        try directory.write([1], to: "a.bin.martlet-record-")
        try part.discard()
        #expect(try directory.list().isEmpty)
        try part.discard()
    }

    @Test(
        "A part file that is a link, a directory or a pipe is not opened, and its target is unchanged"
    )
    func oddPart() throws {
        let directory = try PartDirectory()
        try directory.write([1, 2, 3], to: "canary")
        try FileManager.default.createSymbolicLink(
            atPath: directory.names.part, withDestinationPath: "\(directory.path)/canary")
        #expect(throws: StorageError.self) { try directory.open() }
        #expect(try directory.read("canary") == [1, 2, 3])
        try FileManager.default.removeItem(atPath: directory.names.part)
        try FileManager.default.createDirectory(atPath: directory.names.part, withIntermediateDirectories: false)
        #expect(throws: StorageError.self) { try directory.open() }
        try FileManager.default.removeItem(atPath: directory.names.part)
        #expect(unsafe mkfifo(directory.names.part, 0o600) == 0)
        #expect(throws: StorageError.self) { try directory.open() }
    }

    @Test("The file has the permissions of the umask, and the record is private to its owner")
    func modes() throws {
        let directory = try PartDirectory()
        let part = try #require(try directory.open())
        try PartDirectory.fill(part.file, 0..<10)
        try part.renew(epoch: 1, expecting: nil)
        try PartDirectory.fill(part.file, 0..<10)
        try part.note(PartDirectory.record([0..<10], total: 10, owner: part.owner), epoch: 1)
        #expect(try LinuxFileSystem().status(at: directory.names.record).access.isReadableByOthers == false)
        // A file made with 0666 shows the effect of the umask.
        let other = try LinuxFileSystem().open("\(directory.path)/other", for: .creatingShared)
        let expected = try LinuxFileSystem().status(of: other).access
        _ = try part.publish(total: 10, .fail, modified: nil)
        #expect(try LinuxFileSystem().status(at: directory.names.target).access == expected)
    }
}
