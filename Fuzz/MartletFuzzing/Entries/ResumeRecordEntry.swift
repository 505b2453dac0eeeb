import MartletDownloads
import MartletStorage
import MartletTransport

extension FuzzEntry {
    /// Records of downloads.
    ///
    /// The input is read unchanged, which the checksum seldom allows, and again with a correct length and checksum, so
    /// that its fields are parsed. A parsed record is written to the same bytes.
    static let resumeRecord = FuzzEntry("resume-record") { (bytes) throws(FuzzFinding) in
        try checkRecord(bytes)
        try checkRecord(mendedRecord(bytes))
    }

    private static func checkRecord(_ bytes: [UInt8]) throws(FuzzFinding) {
        let record: ResumeRecord
        do throws(RecordEnvelope.FormatError) {
            record = try ResumeRecord.decode(bytes)
        } catch {
            guard case .field(let field, let offset) = error else { return }
            try require(
                !field.isEmpty && (0...bytes.count).contains(offset), "\(error) points nowhere")
            return
        }
        try require(record.bytes == bytes, "it is written to \(record.bytes.count) bytes of \(bytes.count)")
        let end = record.written.ranges.last?.upperBound ?? 0
        try require(end <= record.total ?? .max, "\(end) bytes are there, of \(record.total ?? 0)")
        // A plan accepts any record, and never requests existing bytes or bytes beyond the end.
        var plan = SegmentPlan(total: record.total, written: record.written)
        guard let range = plan.claim(1, now: .distantFuture) else {
            try require(plan.isComplete, "bytes are missing that no request covers")
            return
        }
        try require(
            !range.isEmpty
                && (record.total == nil || record.written.intersection(RangeSet([range])).isEmpty)
                && range.upperBound <= record.total ?? .max,
            "\(range) is requested")
    }

    /// Returns the record's file with a correct length and checksum.
    static func mendedRecord(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count >= 16 else { return bytes }
        var bytes = bytes
        put(UInt32(truncatingIfNeeded: bytes.count - 16), at: 8, in: &bytes)
        var checksum = RecordChecksum()
        checksum.update(bytes.span.extracting(0..<12))
        checksum.update(bytes.span.extracting(16..<bytes.count))
        put(checksum.value, at: 12, in: &bytes)
        return bytes
    }
}
