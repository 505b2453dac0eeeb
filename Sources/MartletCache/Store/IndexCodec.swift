import MartletStorage

/// The format of the index file: a header of 12 bytes, and a record of 32 bytes for each entry, all with checksums.
///
/// A damaged record loses the position of one entry in the order of use, a damaged header those of all entries.
package enum IndexCodec {
    private static let magic: [UInt8] = [0x4D, 0x52, 0x54, 0x69]
    private static let version: UInt16 = 1
    private static let headerByteCount = 12
    private static let recordByteCount = 32

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

    /// Decodes the intact records of an index file, in their order; `nil` if it is not an index of this version.
    package static func decode(_ bytes: [UInt8]) -> [IndexRecord]? {
        guard bytes.count >= headerByteCount, bytes.starts(with: magic) else { return nil }
        var header = RecordReader(bytes[4..<headerByteCount])
        guard let version: UInt16 = try? header.number("version"), version == Self.version,
            let _: UInt16 = try? header.number("flags"), let checksum: UInt32 = try? header.number("checksum"),
            checksum == RecordChecksum(bytes.span.extracting(0..<8)).value
        else { return nil }
        return (0..<(bytes.count - headerByteCount) / recordByteCount).compactMap { place in
            let start = headerByteCount + place * recordByteCount
            let end = start + recordByteCount
            return try? record(bytes[start..<end], RecordChecksum(bytes.span.extracting(start..<(end - 4))).value)
        }
    }

    private static func record(_ bytes: ArraySlice<UInt8>, _ checksum: UInt32) throws(RecordReader.FieldError)
        -> IndexRecord?
    {
        var reader = RecordReader(bytes)
        let digest = CacheDigest(high: try reader.number("digest"), low: try reader.number("digest"))
        let tick: UInt64 = try reader.number("tick")
        let slot: UInt8 = try reader.number("slot")
        let isMarked = try reader.flag("mark")
        let zero: UInt16 = try reader.number("zero")
        let stored: UInt32 = try reader.number("checksum")
        guard stored == checksum, slot < EntryName.slotLimit, zero == 0 else { return nil }
        return IndexRecord(name: EntryName(digest: digest, slot: Int(slot)), tick: tick, isMarked: isMarked)
    }
}

/// The properties of an entry that the index file holds.
package struct IndexRecord: Hashable, Sendable {
    var name: EntryName
    /// The counter of uses (not a time) at the last use of the entry, or, with SIEVE, at its storing.
    var tick: UInt64
    /// Whether SIEVE has marked the entry as used.
    var isMarked: Bool
}
