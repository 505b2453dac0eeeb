import MartletCaching
import MartletCore
import MartletConditions
@testable import MartletDownloads
import MartletWire

/// A file on a server that follows RFC 9110, except for the settings here.
struct SimulatedFile {
    var byteCount: UInt64
    var tag: String? = "\"one\""
    var version = 1
    /// Whether the server supports ranges.
    var hasRanges = true
    /// Whether responses contain the length.
    var sendsLength = true
    var fields: [(String, String)] = []

    /// Returns the reply to a request.
    func reply(_ rangeRequest: DownloadRequest, from url: String? = nil) throws -> SimulatedDownload.Reply {
        let place = url ?? rangeRequest.url.absoluteForm
        var fields = fields
        if let tag { fields.append(("ETag", tag)) }
        let isMet = rangeRequest.condition.map { $0 == tag } ?? true
        guard let range = rangeRequest.range, hasRanges, isMet else {
            return SimulatedDownload.Reply(
                responseHead: try DownloadResponseHead.sample(
                    200, fields, byteCount: sendsLength ? byteCount : nil, from: place),
                byteCount: byteCount, version: version)
        }
        guard range.lowerBound < byteCount else {
            return SimulatedDownload.Reply(
                responseHead: try DownloadResponseHead.sample(
                    416, fields + [("Content-Range", "bytes */\(byteCount)")], byteCount: 0, from: place))
        }
        let end = min(range.upperBound, byteCount)
        fields.append(("Content-Range", "bytes \(range.lowerBound)-\(end - 1)/\(byteCount)"))
        return SimulatedDownload.Reply(
            responseHead: try DownloadResponseHead.sample(
                206, fields, byteCount: end - range.lowerBound, from: place),
            byteCount: end - range.lowerBound, version: version)
    }

    /// Makes the record of a run that fetched these ranges of the file.
    func record(_ written: RangeSet<UInt64>, total: UInt64?, isUnproven: Bool = false) -> ResumeRecord {
        var fields = fields
        if let tag { fields.append(("ETag", tag)) }
        return ResumeRecord(
            url: "http://files.example/a.bin", representation: Representation(FieldBlock(fields)),
            total: total, written: written, isUnproven: isUnproven, generation: 1, digests: [],
            modified: nil, owner: 7)
    }
}
