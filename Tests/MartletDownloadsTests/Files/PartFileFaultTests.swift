import FoundationEssentials
import Glibc
import MartletDownloads
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Part file on a failing disk")
struct PartFileFaultTests {
    /// A part file of 100 bytes with a matching record.
    private func part(in directory: PartDirectory, _ files: any FileSystem) throws -> PartFile {
        let part = try #require(try directory.open(files))
        try part.renew(epoch: 1, expecting: nil)
        try PartDirectory.fill(part.file, 0..<100)
        try part.note(PartDirectory.record([0..<100], total: 300, owner: part.owner), epoch: 1)
        return part
    }

    private func fault(_ part: PartFile, _ written: Range<UInt64>) -> PartFile.RecordError? {
        do throws(PartFile.RecordError) {
            try part.note(PartDirectory.record([written], total: 300, owner: part.owner), epoch: 1)
            return nil
        } catch {
            return error
        }
    }

    @Test("Bytes that could not be synced are never claimed")
    func unsynced() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try part(in: directory, files)
        try PartDirectory.fill(part.file, 100..<200)
        files.fail(FaultyFileSystem.Fault(.sync, path: "-part", times: 1, code: EIO))
        guard case .unsynced(let error)? = fault(part, 0..<200) else {
            Issue.record("the record was written")
            return
        }
        #expect(error.code == EIO)
        #expect(part.record()?.written == RangeSet([0..<100]))
    }

    @Test(
        "A record that cannot be written keeps the previous one",
        arguments: [
            (FaultyFileSystem.Call.create, ENOSPC), (.write, ENOSPC), (.write, EIO), (.sync, EIO),
            (.rename, EIO),
            (.create, EROFS), (.create, EACCES),
        ])
    func unwritten(_ call: FaultyFileSystem.Call, _ code: Int32) throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try part(in: directory, files)
        try PartDirectory.fill(part.file, 100..<200)
        files.fail(FaultyFileSystem.Fault(call, path: "-record", times: 1, code: code))
        guard case .unwritten(let error)? = fault(part, 0..<200) else {
            Issue.record("it was written, or something else failed")
            return
        }
        #expect(error.code == code)
        #expect(part.record()?.written == RangeSet([0..<100]))
        #expect(try directory.list() == ["a.bin.martlet-part", "a.bin.martlet-record"])
        // Once there is space, writes work again.
        #expect(fault(part, 0..<200) == nil)
        #expect(part.record()?.written == RangeSet([0..<200]))
    }

    @Test("A disk that fills up during a record keeps the previous one")
    func filled() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try part(in: directory, files)
        try PartDirectory.fill(part.file, 100..<200)
        for room in 0..<40 as Range<UInt64> {
            files.fill(after: room)
            guard case .unwritten(let error)? = fault(part, 0..<200) else {
                Issue.record("\(room)")
                continue
            }
            #expect(error.isOutOfSpace)
            #expect(part.record()?.written == RangeSet([0..<100]))
        }
        files.mend()
        #expect(fault(part, 0..<200) == nil)
    }

    @Test("Writes and reads of one byte at a time give the same result")
    func shortWrites() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        files.limitPieces(to: 1)
        let part = try part(in: directory, files)
        try PartDirectory.fill(part.file, 100..<300, files: files)
        #expect(fault(part, 0..<300) == nil)
        #expect(part.record()?.written == RangeSet([0..<300]))
        files.fail(FaultyFileSystem.Fault(.rename, times: 1, code: EXDEV))
        _ = try part.publish(total: 300, .fail, modified: nil)
        #expect(try directory.read("a.bin") == PartDirectory.bytes(0..<300, version: 1))
    }

    @Test("Failed preallocation is reported before the first byte, without a record")
    func noRoom() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        let part = try part(in: directory, files)
        files.fill(after: 1 << 20)
        #expect { try part.renew(epoch: 2, expecting: 1 << 30) } throws: {
            ($0 as? StorageError)?.isOutOfSpace == true
        }
        #expect(part.record() == nil)
        files.mend()
        try part.renew(epoch: 2, expecting: 2 << 20)
        #expect(try part.byteCount() == 0)
    }

    @Test("A directory that is not writable opens and creates no files")
    func readOnly() throws {
        let directory = try PartDirectory()
        let files = FaultyFileSystem()
        files.fail(FaultyFileSystem.Fault(.create, code: EROFS))
        #expect { try directory.open(files) } throws: { ($0 as? StorageError)?.code == EROFS }
        #expect(try directory.list().isEmpty)
        let missing = PartNames(target: "\(directory.path)/none/a.bin")
        #expect { try PartFile.open(missing, files: files) } throws: { $0 is StorageError }
    }

    @Test("A download killed before any call is in the state before or after it")
    func killed() throws {
        var count = 0
        for stop in 0..<200 {
            let directory = try PartDirectory()
            let files = FaultyFileSystem()
            files.stop(after: stop)
            var isPublished = false
            do {
                if let part = try directory.open(files) {
                    isPublished = try Self.history(part, files)
                    if isPublished { count = stop }
                }
            } catch {
                // The process ended there.
            }
            try Self.check(directory, "stopped after \(stop) calls")
            if isPublished { break }
        }
        #expect(count > 20)
    }

    /// Writes two states of a file, and completes the second.
    static func history(_ part: PartFile, _ files: any FileSystem) throws -> Bool {
        try part.renew(epoch: 1, expecting: nil)
        try PartDirectory.fill(part.file, 0..<6_000, version: 1, files: files)
        try part.note(PartDirectory.record([0..<6_000], total: 20_000, version: 1, owner: part.owner), epoch: 1)
        try PartDirectory.fill(part.file, 9_000..<15_000, version: 1, files: files)
        try part.note(
            PartDirectory.record([0..<6_000, 9_000..<15_000], total: 20_000, version: 1, owner: part.owner),
            epoch: 1)
        try part.renew(epoch: 2, expecting: nil)
        try PartDirectory.fill(part.file, 0..<9_000, version: 2, files: files)
        try part.note(PartDirectory.record([0..<9_000], total: 16_000, version: 2, owner: part.owner), epoch: 2)
        try PartDirectory.fill(part.file, 9_000..<16_000, version: 2, files: files)
        try part.note(PartDirectory.record([0..<16_000], total: 16_000, version: 2, owner: part.owner), epoch: 2)
        _ = try part.publish(total: 16_000, .fail, modified: nil)
        return true
    }

    /// Checks that the disk contains one of the allowed states.
    static func check(_ directory: PartDirectory, _ when: String) throws {
        if try directory.list().contains("a.bin") {
            let isWhole = try directory.read("a.bin") == PartDirectory.bytes(0..<16_000, version: 2)
            #expect(isWhole, "\(when): the name has something else")
        }
        let part = try #require(try directory.open(), "\(when): it is not free")
        guard let record = part.record() else { return }
        let version = record.representation.condition == "\"1\"" ? 1 : 2
        for range in record.written.ranges {
            let bytes = try LinuxFileSystem().read(
                part.file, count: Int(range.byteCount), at: range.lowerBound)
            #expect(bytes == PartDirectory.bytes(range, version: version), "\(when): \(range)")
        }
    }

    @Test("After any kill or power cut the record claims no missing bytes")
    func powerCuts() async throws {
        let files = RecordingFileSystem()
        let original = try PartDirectory()
        #expect(try Self.history(#require(try original.open(files)), files))
        let changes = files.changes
        try #require(changes.count > 20)
        var cuts: [PowerLoss] = []
        for count in 0...changes.count {
            cuts.append(.after(count))
            for seed in 0..<12 as Range<UInt64> { cuts.append(.unsynced(count, seed: seed &+ 17)) }
        }
        var resumable = 0
        for cut in cuts {
            let directory = try PartDirectory()
            for (name, bytes) in cut.files(after: changes) { try directory.write(bytes, to: name) }
            try Self.check(directory, "\(cut)")
            if try directory.open()?.record() != nil { resumable += 1 }
            await Task.yield()
        }
        #expect(resumable > 20)
    }
}
