import MartletCache
import MartletStorage

extension FuzzEntry {
    /// Index files of the disk cache.
    ///
    /// The input is decoded unchanged, and again with correct checksums. Damaged records are dropped, so the decoded
    /// records are compared after encoding and decoding them again.
    static let cacheIndex = FuzzEntry("cache-index") { (bytes) throws(FuzzFinding) in
        try checkIndex(bytes)
        try checkIndex(mended(bytes))
    }

    private static let headerByteCount = 12
    private static let recordByteCount = 32

    private static func checkIndex(_ bytes: [UInt8]) throws(FuzzFinding) {
        guard let records = IndexCodec.decode(bytes) else { return }
        let count = (bytes.count - headerByteCount) / recordByteCount
        try require(records.count <= count, "\(records.count) records of \(bytes.count) bytes")
        let encoded = IndexCodec.encode(records)
        try require(IndexCodec.decode(encoded) == records, "records do not read back equal")
        guard records.count == count else { return }
        // The flags of the header depend on the program that wrote it.
        let kept = bytes.prefix(headerByteCount + count * recordByteCount)
        try require(
            encoded.dropFirst(headerByteCount).elementsEqual(kept.dropFirst(headerByteCount)),
            "whole records are encoded to other bytes")
    }

    /// Returns the bytes with correct checksums.
    private static func mended(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count >= headerByteCount else { return bytes }
        var bytes = bytes
        put(RecordChecksum(bytes.span.extracting(0..<8)).value, at: 8, in: &bytes)
        var start = headerByteCount
        while start + recordByteCount <= bytes.count {
            let end = start + recordByteCount
            put(RecordChecksum(bytes.span.extracting(start..<(end - 4))).value, at: end - 4, in: &bytes)
            start = end
        }
        return bytes
    }
}
