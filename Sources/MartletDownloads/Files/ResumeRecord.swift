import MartletCaching
import MartletCore
import MartletHosts
import MartletStreams
package import MartletStorage
package import MartletTransport
import MartletWire
import Synchronization

/// What is known of the bytes that a download has left, so that another run can go on with them.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | `MRTd` |
/// | 4 | 2 | version, 1 |
/// | 6 | 2 | 0 |
/// | 8 | 4 | length of what follows |
/// | 12 | 4 | CRC-32 of the 12 bytes before and of what follows |
///
/// Numbers are little endian, texts stand behind their lengths. No credential is in it: the URL has no user info.
package struct ResumeRecord: Hashable, Sendable {
    /// The URL, without user info.
    package var url: String
    /// Which state of the file the bytes are of.
    package var representation: Representation
    /// How long the file is; nil where that is not known.
    package var total: UInt64?
    /// Which bytes are there.
    package var written: RangeSet<UInt64>
    /// Whether bytes of several requests are among them that nothing proves to be of one state.
    package var isUnproven: Bool
    /// How often the download began anew before.
    package var generation: UInt32
    /// What the server says the whole file comes to.
    package var digests: [Checksum]
    /// `Last-Modified`, in seconds since 1970.
    package var modified: Int64?
    /// Who wrote it: random, new for each run.
    package var owner: UInt64

    /// How many bytes it claims.
    package var writtenCount: UInt64 { written.ranges.reduce(0) { $0 + $1.byteCount } }

    /// The version that is written, and the only one that is read.
    package static let version: UInt16 = 1
    /// The longest record.
    package static let byteLimit = 1 << 20
    private static let magic: [UInt8] = [0x4D, 0x52, 0x54, 0x64]
    private static let preambleByteCount = 16
    private static let rangeLimit = 32_768

    /// A record.
    package init(
        url: String, representation: Representation, total: UInt64?, written: RangeSet<UInt64>,
        isUnproven: Bool, generation: UInt32, digests: [Checksum], modified: Int64?, owner: UInt64
    ) {
        self.url = url
        self.representation = representation
        self.total = total
        self.written = written
        self.isUnproven = isUnproven
        self.generation = generation
        self.digests = digests
        self.modified = modified
        self.owner = owner
    }

    /// The bytes of the record.
    package var bytes: [UInt8] {
        var writer = RecordWriter()
        writer.write(raw: ResumeRecord.magic)
        writer.write(ResumeRecord.version)
        writer.write(UInt16(0))
        writer.write(UInt32(0))
        writer.write(UInt32(0))
        writer.write(owner)
        writer.write(generation)
        writer.write(isUnproven)
        writer.write(counted: url.utf8)
        writer.write(representation.entityTag != nil)
        if let tag = representation.entityTag { writer.write(counted: tag.bytes) }
        write(representation.lastModified, &writer)
        writer.write(representation.isLastModifiedStrong)
        write(representation.coding, &writer)
        writer.write(total != nil)
        if let total { writer.write(total) }
        writer.write(modified != nil)
        if let modified { writer.write(UInt64(bitPattern: modified)) }
        writer.write(UInt8(truncatingIfNeeded: digests.count))
        for digest in digests {
            writer.write(counted: digest.algorithm.rawValue.utf8)
            writer.write(counted: digest.bytes)
        }
        // More ranges than there ever are; those left out are fetched once more.
        let ranges = written.ranges.prefix(ResumeRecord.rangeLimit)
        writer.write(UInt32(ranges.count))
        for range in ranges {
            writer.write(range.lowerBound)
            writer.write(range.upperBound)
        }
        let length = UInt32(writer.bytes.count - ResumeRecord.preambleByteCount)
        writer.overwrite(length, at: 8)
        writer.overwrite(ResumeRecord.checksum(writer.bytes[...]), at: 12)
        return writer.bytes
    }

    private func write(_ text: String?, _ writer: inout RecordWriter) {
        writer.write(text != nil)
        if let text { writer.write(counted: text.utf8) }
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var checksum = RecordChecksum()
        checksum.update(Array(bytes.prefix(12)).span)
        checksum.update(Array(bytes.dropFirst(preambleByteCount)).span)
        return checksum.value
    }

    /// Reads a record.
    /// - Throws: What is wrong with it: another form or version, damage, ranges out of order or beyond the file's end.
    package init(_ bytes: [UInt8]) throws(RecordReader.Fault) {
        var reader = RecordReader(bytes[...])
        guard try reader.raw(4, "magic").elementsEqual(ResumeRecord.magic) else {
            throw reader.fault("magic")
        }
        guard try reader.number("version") == ResumeRecord.version else { throw reader.fault("version") }
        guard try reader.number("reserved") == UInt16(0) else { throw reader.fault("reserved") }
        let length: UInt32 = try reader.number("length")
        let checksum: UInt32 = try reader.number("checksum")
        guard reader.remainingCount == Int(length) else { throw reader.fault("length") }
        guard checksum == ResumeRecord.checksum(bytes[...]) else { throw reader.fault("checksum") }
        owner = try reader.number("owner")
        generation = try reader.number("generation")
        isUnproven = try reader.flag("unproven")
        url = try reader.text(limit: 65_536, "URL")
        var representation = Representation()
        if try reader.flag("entity tag") {
            guard let tag = EntityTag(try reader.counted(limit: 65_536, "entity tag")) else {
                throw reader.fault("entity tag")
            }
            representation.entityTag = tag
        }
        representation.lastModified = try ResumeRecord.text(&reader, "Last-Modified")
        representation.isLastModifiedStrong = try reader.flag("strong date")
        representation.coding = try ResumeRecord.text(&reader, "coding")
        self.representation = representation
        total = try reader.flag("total") ? try reader.number("total") : nil
        modified = try reader.flag("modified") ? Int64(bitPattern: try reader.number("modified")) : nil
        let digestCount: UInt8 = try reader.number("digests")
        var digests: [Checksum] = []
        for _ in 0..<digestCount {
            let name = try reader.text(limit: 16, "digest")
            let bytes = try reader.counted(limit: 64, "digest")
            guard let algorithm = DigestSink.Algorithm(rawValue: name),
                let digest = Checksum(algorithm, Array(bytes))
            else { throw reader.fault("digest") }
            digests.append(digest)
        }
        self.digests = digests
        let rangeCount: UInt32 = try reader.number("ranges")
        guard rangeCount <= ResumeRecord.rangeLimit else { throw reader.fault("ranges") }
        var written = RangeSet<UInt64>()
        var end: UInt64 = 0
        for index in 0..<rangeCount {
            let lower: UInt64 = try reader.number("range")
            let upper: UInt64 = try reader.number("range")
            guard lower < upper, upper <= total ?? .max - 1, index == 0 || lower > end else {
                throw reader.fault("range")
            }
            written.insert(contentsOf: lower..<upper)
            end = upper
        }
        self.written = written
        guard reader.remainingCount == 0 else { throw reader.fault("end") }
    }

    private static func text(
        _ reader: inout RecordReader, _ field: String
    ) throws(RecordReader.Fault) -> String? {
        try reader.flag(field) ? try reader.text(limit: 65_536, field) : nil
    }
}

/// Which records lie in folders, so that many downloads into one folder do not each list all that is in it.
///
/// A list is good for a second. What this process writes is known at once; a record that another process leaves may be missed
/// for that long, and its download then begins anew.
package final class FolderRecords: Sendable {
    private struct List {
        var names: [String]
        var time: MonotonicTime
    }

    private struct State {
        /// Behind the folders' paths.
        var lists: [String: List] = [:]
        /// How often records were written.
        var changeCount: UInt64 = 0
    }

    /// Of all downloads of this process.
    package static let shared = FolderRecords()
    /// For how long a list is good.
    package static let lifetime = Duration.seconds(1)

    /// Guards the above: workers that list and write, and tasks that look.
    private let state = Mutex(State())

    /// None are known.
    package init() {}

    /// The names of the records in a folder, sorted, if they are known; the folder is the process's own where it is empty.
    package func names(known folder: String, now: MonotonicTime = .now()) -> [String]? {
        state.withLock { state in
            guard let list = state.lists[folder], now.since(list.time) < FolderRecords.lifetime else {
                return nil
            }
            return list.names
        }
    }

    /// The names of the records in a folder, sorted. It is listed where they are not known, which blocks.
    package func names(
        in folder: String, _ files: any FileSystem, now: MonotonicTime = .now()
    ) throws(StorageError) -> [String] {
        if let names = names(known: folder, now: now) { return names }
        let changeCount = state.withLock { $0.changeCount }
        let names = try files.names(inFolder: folder.isEmpty ? "." : folder)
            .filter { $0.hasSuffix(PartNames.recordSuffix) }.sorted()
        state.withLock { state in
            // What was written while it was listed may be missing.
            guard state.changeCount == changeCount else { return }
            state.lists = state.lists.filter { now.since($0.value.time) < FolderRecords.lifetime }
            state.lists[folder] = List(names: names, time: now)
        }
        return names
    }

    /// A record was written in a folder: it has to be listed again.
    package func forget(_ folder: String) {
        state.withLock { state in
            state.changeCount += 1
            state.lists[folder] = nil
        }
    }
}

/// By what a file is known again that has got another name meanwhile.
package struct FileMark: Hashable, Sendable {
    /// Its number in its file system.
    package var number: UInt64
    /// The number of its file system, which a restart of the machine may change.
    package var device: UInt64
    /// When it was written last, in nanoseconds since 1970; a power cut may take it back.
    package var modificationTime: Int64

    /// A mark, part by part.
    package init(number: UInt64, device: UInt64, modificationTime: Int64) {
        self.number = number
        self.device = device
        self.modificationTime = modificationTime
    }

    /// The mark of a file.
    package init(_ status: FileStatus) {
        self.init(
            number: status.identity, device: status.device, modificationTime: status.modificationTime)
    }

    /// Whether a file is this one. Of what may change while nobody looks, one has to be as it was.
    package func isOf(_ status: FileStatus) -> Bool {
        status.kind == .file && status.identity == number
            && (status.device == device || status.modificationTime == modificationTime)
    }
}
