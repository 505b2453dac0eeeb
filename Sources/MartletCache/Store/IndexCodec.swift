import MartletStorage

/// The form of the index file: 12 bytes, and 32 for each entry, each with a checksum of its own.
///
/// It says in which order entries were used and no more; which there are, the folder says. So a damaged record costs one
/// entry its place in the order, and a damaged file costs all of them theirs.
package enum IndexCodec {
    private static let magic: [UInt8] = [0x4D, 0x52, 0x54, 0x69]
    private static let version: UInt16 = 1
    private static let headerByteCount = 12
    /// The bytes of one record.
    static let recordByteCount = 32

    /// The bytes of an index file.
    package static func encode(_ records: [IndexRecord]) -> [UInt8] {
        var writer = RecordWriter()
        writer.reserve(headerByteCount + records.count * recordByteCount)
        writer.write(raw: magic)
        writer.write(version)
        writer.write(UInt16(0))
        writer.write(RecordChecksum(writer.bytes.span).value)
        for record in records {
            let start = writer.bytes.count
            writer.write(record.name.digest.high)
            writer.write(record.name.digest.low)
            writer.write(record.tick)
            writer.write(UInt8(record.name.slot))
            writer.write(record.isMarked)
            writer.write(UInt16(0))
            writer.write(RecordChecksum(writer.bytes.span.extracting(start..<writer.bytes.count)).value)
        }
        return writer.bytes
    }

    /// The records of an index file that are whole, in their order; `nil` where the file is no index of this version.
    package static func decode(_ bytes: [UInt8]) -> [IndexRecord]? {
        guard bytes.count >= headerByteCount, bytes.starts(with: magic) else { return nil }
        var header = RecordReader(bytes[4..<headerByteCount])
        guard let version: UInt16 = try? header.number("version"), version == Self.version,
            let _: UInt16 = try? header.number("flags"),
            let checksum: UInt32 = try? header.number("checksum"),
            checksum == RecordChecksum(bytes.span.extracting(0..<8)).value
        else { return nil }
        var records: [IndexRecord] = []
        let count = (bytes.count - headerByteCount) / recordByteCount
        records.reserveCapacity(count)
        for place in 0..<count {
            let start = headerByteCount + place * recordByteCount
            let end = start + recordByteCount
            if let record = record(
                bytes[start..<end], RecordChecksum(bytes.span.extracting(start..<(end - 4))).value)
            {
                records.append(record)
            }
        }
        return records
    }

    private static func record(_ bytes: ArraySlice<UInt8>, _ checksum: UInt32) -> IndexRecord? {
        var reader = RecordReader(bytes)
        do throws(RecordReader.Fault) {
            let digest = CacheDigest(high: try reader.number("digest"), low: try reader.number("digest"))
            let tick: UInt64 = try reader.number("tick")
            let slot: UInt8 = try reader.number("slot")
            let isMarked = try reader.flag("mark")
            let zero: UInt16 = try reader.number("zero")
            let stored: UInt32 = try reader.number("checksum")
            guard stored == checksum, slot < EntryName.slotLimit, zero == 0 else { return nil }
            return IndexRecord(
                name: EntryName(digest: digest, slot: Int(slot)), tick: tick, isMarked: isMarked)
        } catch {
            return nil
        }
    }
}

/// What the index remembers of an entry from run to run.
package struct IndexRecord: Hashable, Sendable {
    var name: EntryName
    /// When it was used last, or stored, as the policy has it: a count of uses and no time.
    var tick: UInt64
    /// Whether the policy had marked it.
    var isMarked: Bool
}
