package import MartletCore
import MartletStreams
import Synchronization

/// The record of the received bytes of a download, from which another run resumes. Its file is a ``RecordEnvelope``
/// with the magic `MRTd`, version 1, or 2 with ``sources``. It has no credentials: the URL has no user info.
package struct ResumeRecord: Hashable, Sendable {
    /// The URL, without user info.
    package var url: String
    /// The representation that the bytes belong to.
    package var representation: Representation
    /// The length of the file; `nil` if it is unknown.
    package var total: UInt64?
    /// The received ranges.
    package var written: RangeSet<UInt64>
    /// Whether the ranges have bytes of several requests that are not proven to belong to one representation.
    package var isUnproven: Bool
    /// The generation of the download: the number of its starts from the first byte.
    package var generation: UInt32
    /// The digests of the whole file that the server announced.
    package var digests: [Checksum]
    /// `Last-Modified`, in seconds since 1970.
    package var modified: Int64?
    /// The run that wrote the record: random, new for each run.
    package var owner: UInt64
    /// The representations of the bytes by URL, that of ``representation`` first; empty if all are of ``url``.
    package var sources: [Source] = []

    /// The representation of the bytes as one server describes it. The URL has no user info.
    package struct Source: Hashable, Sendable {
        package var url: String
        package var representation: Representation
    }

    package var writtenCount: UInt64 { written.ranges.reduce(0) { $0 + $1.byteCount } }

    package static let byteLimit = 1 << 20
    private static let envelope = RecordEnvelope(magic: "MRTd", version: 1, byteLimit: byteLimit)
    /// The format of a record with several sources. Others keep the first version, which earlier programs can read.
    private static let sourcesEnvelope = RecordEnvelope(magic: "MRTd", version: 2, byteLimit: byteLimit)
    private static let sourceLimit: UInt8 = 101
    private static let rangeLimit = 32_768
    private static let textLimit = 65_536

    package var bytes: [UInt8] {
        // A record that is too long is encoded as empty, because it could not be read.
        (try? (sources.isEmpty ? ResumeRecord.envelope : ResumeRecord.sourcesEnvelope).encode(write)) ?? []
    }

    private func write(_ writer: inout RecordWriter) {
        writer.write(owner)
        writer.write(generation)
        writer.write(isUnproven)
        writer.write(text: url)
        writer.write(representation)
        writer.write(optional: total)
        writer.write(optional: modified)
        writer.write(digests)
        // The limit is higher than any real number of ranges; omitted ranges are fetched again.
        let ranges = written.ranges.prefix(ResumeRecord.rangeLimit)
        writer.write(UInt32(ranges.count))
        for range in ranges {
            writer.write(range.lowerBound)
            writer.write(range.upperBound)
        }
        guard !sources.isEmpty else { return }
        writer.write(UInt8(truncatingIfNeeded: min(sources.count, Int(ResumeRecord.sourceLimit))))
        for source in sources.prefix(Int(ResumeRecord.sourceLimit)) {
            writer.write(text: source.url)
            writer.write(source.representation)
        }
    }

    /// Decodes a record.
    /// - Throws: An error for another format or version, damage, ranges out of order or past the end of the file.
    package static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.FormatError) -> ResumeRecord {
        try sourcesEnvelope.decode(bytes) { reader, version throws(RecordReader.FieldError) in
            var record = try ResumeRecord(&reader)
            guard version > 1 else { return record }
            record.sources = try reader.list(of: UInt8.self, limit: sourceLimit, "sources") {
                reader throws(RecordReader.FieldError) in
                let url = try reader.text(limit: textLimit, "source")
                return Source(url: url, representation: try reader.representation(textLimit))
            }
            guard !record.sources.isEmpty else { throw reader.makeError("sources") }
            return record
        }
    }
}

extension ResumeRecord {
    private init(_ reader: inout RecordReader) throws(RecordReader.FieldError) {
        owner = try reader.number("owner")
        generation = try reader.number("generation")
        isUnproven = try reader.flag("unproven")
        url = try reader.text(limit: ResumeRecord.textLimit, "URL")
        representation = try reader.representation(ResumeRecord.textLimit)
        total = try reader.optionalNumber("total")
        modified = try reader.optionalNumber("modified")
        digests = try reader.checksums()
        let rangeCount: UInt32 = try reader.number("ranges")
        guard rangeCount <= ResumeRecord.rangeLimit else { throw reader.makeError("ranges") }
        written = RangeSet<UInt64>()
        var end: UInt64 = 0
        for index in 0..<rangeCount {
            let lower: UInt64 = try reader.number("range")
            let upper: UInt64 = try reader.number("range")
            guard lower < upper, upper <= total ?? .max - 1, index == 0 || lower > end else {
                throw reader.makeError("range")
            }
            written.insert(contentsOf: lower..<upper)
            end = upper
        }
    }
}

private let checksumLimit: UInt8 = 64

extension RecordWriter {
    fileprivate mutating func write(_ representation: Representation) {
        write(optional: representation.entityTag) { $1.write(counted: $0.bytes) }
        write(optional: representation.lastModified)
        write(representation.isLastModifiedStrong)
        write(optional: representation.coding)
    }

    /// Writes the number of checksums and the checksums, 64 at most.
    mutating func write(_ checksums: [Checksum]) {
        let written = checksums.prefix(Int(checksumLimit))
        write(UInt8(truncatingIfNeeded: written.count))
        for checksum in written {
            write(text: checksum.algorithm.rawValue)
            write(counted: checksum.bytes)
        }
    }
}

extension RecordReader {
    fileprivate mutating func representation(_ textLimit: Int) throws(FieldError) -> Representation {
        var representation = Representation()
        if try flag("entity tag") {
            representation.entityTag = EntityTag(try counted(limit: textLimit, "entity tag"))
            guard representation.entityTag != nil else { throw makeError("entity tag") }
        }
        representation.lastModified = try optionalText(limit: textLimit, "Last-Modified")
        representation.isLastModifiedStrong = try flag("strong date")
        representation.coding = try optionalText(limit: textLimit, "coding")
        return representation
    }

    /// Reads the number of checksums and the checksums.
    mutating func checksums() throws(FieldError) -> [Checksum] {
        try list(of: UInt8.self, limit: checksumLimit, "checksums") { reader throws(FieldError) in
            let name = try reader.text(limit: 64, "hash function")
            let bytes = Array(try reader.counted(limit: 64, "hash"))
            guard let algorithm = DigestSink.Algorithm(rawValue: name), let checksum = Checksum(algorithm, bytes) else {
                throw reader.makeError("hash")
            }
            return checksum
        }
    }
}

/// An index of the records in directories, so that many downloads into one directory do not each list it. A list is
/// valid for a second. Records of this process are known immediately. A download whose record another process wrote in
/// that second restarts.
package final class DirectoryRecordIndex: Sendable {
    private struct State {
        /// The lists by the path of the directory.
        var lists: [String: (names: [String], time: MonotonicTime)] = [:]
        /// The number of records written so far.
        var changeCount: UInt64 = 0
    }

    /// The records of all downloads of this process.
    package static let shared = DirectoryRecordIndex()
    /// The time for which a list is valid.
    package static let lifetime = Duration.seconds(1)
    /// The lock on the lists, used by workers that list and write, and by tasks that search for a record.
    private let state = Mutex(State())

    /// Returns the sorted names of the records in a directory (empty: working directory); `nil` without a valid list.
    package func names(known directory: String, now: MonotonicTime = .now()) -> [String]? {
        state.withLock { state in
            guard let list = state.lists[directory], now.since(list.time) < DirectoryRecordIndex.lifetime else {
                return nil
            }
            return list.names
        }
    }

    /// Returns the sorted names of the records in a directory. Without a valid list it lists the directory, and blocks.
    package func names(in directory: String, _ files: any FileSystem, now: MonotonicTime = .now()) throws(StorageError)
        -> [String]
    {
        if let names = names(known: directory, now: now) { return names }
        let changeCount = state.withLock { $0.changeCount }
        let names = try files.names(inDirectory: directory.isEmpty ? "." : directory).filter {
            $0.hasSuffix(PartNames.recordSuffix)
        }.sorted()
        state.withLock { state in
            // A record that was written since the directory was listed may be missing.
            guard state.changeCount == changeCount else { return }
            state.lists = state.lists.filter { now.since($0.value.time) < DirectoryRecordIndex.lifetime }
            state.lists[directory] = (names, now)
        }
        return names
    }

    /// Marks a directory to be listed again, because a record was written there.
    package func forget(_ directory: String) {
        state.withLock { state in
            state.changeCount += 1
            state.lists[directory] = nil
        }
    }
}

/// The identity of a file, by which it is recognized after a rename.
package struct FileIdentity: Hashable, Sendable {
    /// The inode number of the file.
    package var number: UInt64
    /// The device number of the file system, which a reboot may change.
    package var device: UInt64
    /// The modification time in nanoseconds since 1970; a power cut may reset it.
    package var modificationTime: Int64

    /// Whether a file is this one. Its device or its modification time may have changed, but not both.
    package func isOf(_ status: FileStatus) -> Bool {
        status.kind == .file && status.identity == number
            && (status.device == device || status.modificationTime == modificationTime)
    }
}

extension FileIdentity {
    package init(_ status: FileStatus) {
        self.init(number: status.identity, device: status.device, modificationTime: status.modificationTime)
    }
}
