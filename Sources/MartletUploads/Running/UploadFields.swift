import FoundationEssentials
import MartletCore

/// The header fields of the requests of an upload.
enum UploadFields {
    private static func name(_ text: String) -> HTTPField.Name { HTTPField.Name(text) ?? .expect }

    static let interopVersion = name("Upload-Draft-Interop-Version")
    static let tusResumable = name("Tus-Resumable")
    private static let offset = name("Upload-Offset")
    private static let length = name("Upload-Length")
    private static let complete = name("Upload-Complete")
    private static let metadata = name("Upload-Metadata")
    /// The fields about the file as a whole, which only the request that creates the upload has.
    static let ofContent: [HTTPField.Name] =
        [
            .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentRange,
            .contentDisposition, .idempotencyKey, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
            metadata,
        ] + ["Digest", "Content-Digest", "Repr-Digest"].map(name)

    /// Adds the fields of a request.
    /// - Returns: The method of the request.
    static func add(
        to fields: inout HTTPFields, for request: UploadMachine.Request, of item: UploadItem,
        _ checkpoint: UploadMachine.Checkpoint
    ) -> HTTPRequest.Method {
        let isTus = checkpoint.protocol == .tus
        if isTus, request != .discover { fields[tusResumable] = "1.0.0" }
        // A plain request announces that it may be resumed only if the caller did not rule that out.
        let isPlain = request == .whole && item.options.protocol == .plain
        if !isTus, !isPlain { fields[interopVersion] = "8" }
        switch request {
        case .discover: return .options
        case .query:
            // No cache may respond for the server.
            fields[.cacheControl] = "no-store, no-cache"
            return .head
        case .create:
            fields[length] = "\(item.file.byteCount)"
            guard isTus else {
                fields[complete] = "?0"
                fields[.contentType] = fields[.contentType] ?? "application/octet-stream"
                return item.options.method
            }
            fields[metadata] = fields[metadata] ?? tusMetadata(item, type: fields[.contentType])
            fields[.contentType] = nil
            return .post
        case .append(let range, let isLast):
            fields[offset] = "\(range.lowerBound)"
            fields[.contentType] = isTus ? "application/offset+octet-stream" : "application/partial-upload"
            if !isTus { fields[complete] = isLast ? "?1" : "?0" }
            return .patch
        case .whole:
            fields[.contentType] = fields[.contentType] ?? "application/octet-stream"
            if !isPlain {
                fields[complete] = "?1"
                fields[length] = "\(item.file.byteCount)"
            }
            return item.options.method
        }
    }

    /// The value of `Authorization` for the user of a URL; `nil` without one.
    static func authorization(of url: HTTPURL) -> String? {
        url.user.map { "Basic \(Data("\($0):\(url.password ?? "")".utf8).base64EncodedString())" }
    }

    /// The metadata by the conventions of tus servers: the name of the file, and its type.
    private static func tusMetadata(_ item: UploadItem, type: String?) -> String {
        var pairs = [("filename", FilePath(item.path).lastComponent?.string ?? "")]
        if let type { pairs.append(("filetype", type)) }
        return pairs.map { "\($0) \(Data($1.utf8).base64EncodedString())" }.joined(separator: ",")
    }
}
