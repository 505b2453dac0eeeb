public import FoundationEssentials
import MartletWire

/// A representation with validators, as a file is: answers conditional requests and ranges by RFC 9110 §13
/// and §14.
///
/// Of a request for several ranges it sends the whole, which §14.2 allows.
public struct OriginContent: Sendable {
    /// The bytes; of a stream no ranges are given.
    public var body: OriginResponseBody
    /// Its media type.
    public var type: String
    /// Its entity tag with quotes, such as `"v1"` or `W/"v1"`; `nil` for none.
    public var entityTag: String?
    /// When it was changed last, to the second; `nil`: not told.
    public var lastModified: Date?
    /// Whether ranges are given.
    public var acceptsRanges = true
    /// Fields sent with it, also with a 304.
    public var fields = OriginFields()

    /// A representation.
    public init(
        body: OriginResponseBody, type: String = "application/octet-stream", entityTag: String? = nil,
        lastModified: Date? = nil
    ) {
        self.body = body
        self.type = type
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    /// The answer to a request for it.
    public func response(to request: OriginRequest) -> OriginResponse {
        let modified = lastModified.map {
            HTTPDate(secondsSinceEpoch: Int64($0.timeIntervalSince1970.rounded(.down)))
        }
        let length = isSliceable ? body.length : nil
        let decision = ContentDecision(
            request: ContentDecision.Request(method: request.method, fields: request.fields),
            entityTag: entityTag, lastModified: modified, length: acceptsRanges ? length : nil)
        var response = OriginResponse(fields: fields)
        if let entityTag { response.fields.append("ETag", entityTag) }
        if let modified { response.fields.append("Last-Modified", modified.text) }
        if acceptsRanges, length != nil { response.fields.append("Accept-Ranges", "bytes") }
        switch decision {
        case .notModified: response.status = 304
        case .preconditionFailed: response.status = 412
        case .whole:
            response.fields.append("Content-Type", type)
            response.body = body
        case .part(let range, let total):
            response.status = 206
            response.fields.append("Content-Type", type)
            response.fields.append("Content-Range", ContentRange.satisfied(range, total: total).text)
            response.body = body.slice(range)
        case .unsatisfiable(let total):
            response.status = 416
            response.fields.append("Content-Range", ContentRange.unsatisfied(total: total).text)
        }
        return response
    }

    private var isSliceable: Bool {
        if case .stream = body.content { false } else { true }
    }
}

extension OriginResponseBody {
    /// Some of the bytes; of a stream all of them.
    func slice(_ range: Range<UInt64>) -> OriginResponseBody {
        switch content {
        case .bytes(let bytes):
            .bytes(Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        case .pattern(let offset, _):
            .pattern(range.upperBound - range.lowerBound, from: offset + range.lowerBound)
        case .file(let path, let whole):
            .file(path, range: whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound)
        case .stream: self
        }
    }
}
