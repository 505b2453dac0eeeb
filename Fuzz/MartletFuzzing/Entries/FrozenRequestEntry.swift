import MartletCore
import MartletOffline
import MartletStorage

extension FuzzEntry {
    /// Records of queued requests.
    ///
    /// The input is read unchanged, which the checksum seldom allows, and again with a correct length and checksum, so
    /// that its fields are parsed. A parsed record survives writing and reading.
    static let frozenRequest = FuzzEntry("frozen-request") { (bytes) throws(FuzzFinding) in
        try checkFrozen(bytes)
        try checkFrozen(mendedRecord(bytes))
    }

    private static func checkFrozen(_ bytes: [UInt8]) throws(FuzzFinding) {
        let request: QueuedRequest
        do throws(RecordEnvelope.FormatError) {
            request = try QueuedRequestCodec.decode(bytes)
        } catch {
            if case .field(let field, let offset) = error {
                try require(!field.isEmpty && (0...bytes.count).contains(offset), "\(error) points nowhere")
            }
            return
        }
        try require(request.url.user == nil && request.url.password == nil, "its URL has user info")
        if case .file(let path, _) = request.body {
            try require(path.hasPrefix("/"), "its body is at \(path)")
        }
        let again: QueuedRequest
        do throws(RecordEnvelope.FormatError) {
            again = try QueuedRequestCodec.decode(try QueuedRequestCodec.encode(request))
        } catch {
            throw FuzzFinding("what was written is not read: \(error)")
        }
        try require(again == request, "it is read as \(again), and was \(request)")
    }
}
