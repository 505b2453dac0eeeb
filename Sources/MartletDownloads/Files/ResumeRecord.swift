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
/// Its file is a ``RecordEnvelope`` named `MRTd`, version 1. No credential is in it: the URL has no user info.
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

    /// The longest record.
    package static let byteLimit = 1 << 20
    private static let envelope = RecordEnvelope(magic: "MRTd", version: 1, byteLimit: byteLimit)
    private static let rangeLimit = 32_768
    private static let textLimit = 65_536

    /// The bytes of the record.
    package var bytes: [UInt8] {
        // One that is too long is none, and would not be read either.
        (try? ResumeRecord.envelope.encode(write)) ?? []
    }

    private func write(_ writer: inout RecordWriter) {
        writer.write(owner)
        writer.write(generation)
        writer.write(isUnproven)
        writer.write(text: url)
        writer.write(optional: representation.entityTag) { $1.write(counted: $0.bytes) }
        writer.write(optional: representation.lastModified)
        writer.write(representation.isLastModifiedStrong)
        writer.write(optional: representation.coding)
        writer.write(optional: total)
        writer.write(optional: modified)
        writer.write(digests)
        // More ranges than there ever are; those left out are fetched once more.
        let ranges = written.ranges.prefix(ResumeRecord.rangeLimit)
        writer.write(UInt32(ranges.count))
        for range in ranges {
            writer.write(range.lowerBound)
            writer.write(range.upperBound)
        }
    }

    /// Reads a record.
    /// - Throws: What is wrong with it: another form or version, damage, ranges out of order or beyond the file's end.
    package static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.Fault) -> ResumeRecord {
        try envelope.decode(bytes) { reader, _ throws(RecordReader.Fault) in try ResumeRecord(&reader) }
    }
}

extension ResumeRecord {
    private init(_ reader: inout RecordReader) throws(RecordReader.Fault) {
        owner = try reader.number("owner")
        generation = try reader.number("generation")
        isUnproven = try reader.flag("unproven")
        url = try reader.text(limit: ResumeRecord.textLimit, "URL")
        representation = Representation()
        representation.entityTag = try reader.optional("entity tag") { reader throws(RecordReader.Fault) in
            guard let tag = EntityTag(try reader.counted(limit: ResumeRecord.textLimit, "entity tag")) else {
                throw reader.fault("entity tag")
            }
            return tag
        }
        representation.lastModified = try reader.optionalText(limit: ResumeRecord.textLimit, "Last-Modified")
        representation.isLastModifiedStrong = try reader.flag("strong date")
        representation.coding = try reader.optionalText(limit: ResumeRecord.textLimit, "coding")
        total = try reader.optionalNumber("total")
        modified = try reader.optionalNumber("modified")
        digests = try reader.checksums()
        let rangeCount: UInt32 = try reader.number("ranges")
        guard rangeCount <= ResumeRecord.rangeLimit else { throw reader.fault("ranges") }
        written = RangeSet<UInt64>()
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
    }
}

extension RecordWriter {
    /// Writes checksums behind their number, 64 at most.
    mutating func write(_ checksums: [Checksum]) {
        let written = checksums.prefix(RecordReader.checksumLimit)
        write(UInt8(truncatingIfNeeded: written.count))
        for checksum in written {
            write(text: checksum.algorithm.rawValue)
            write(counted: checksum.bytes)
        }
    }
}

extension RecordReader {
    fileprivate static var checksumLimit: Int { 64 }

    /// Reads checksums behind their number.
    mutating func checksums() throws(Fault) -> [Checksum] {
        let count: UInt8 = try number("checksums")
        guard count <= RecordReader.checksumLimit else { throw fault("checksums") }
        var checksums: [Checksum] = []
        for _ in 0..<count {
            let name = try text(limit: 64, "hash function")
            let bytes = Array(try counted(limit: 64, "hash"))
            guard let algorithm = DigestSink.Algorithm(rawValue: name),
                let checksum = Checksum(algorithm, bytes)
            else { throw fault("hash") }
            checksums.append(checksum)
        }
        return checksums
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

    /// Whether a file is this one. Of what may change while nobody looks, one has to be as it was.
    package func isOf(_ status: FileStatus) -> Bool {
        status.kind == .file && status.identity == number
            && (status.device == device || status.modificationTime == modificationTime)
    }
}

extension FileMark {
    /// The mark of a file.
    package init(_ status: FileStatus) {
        self.init(number: status.identity, device: status.device, modificationTime: status.modificationTime)
    }
}
